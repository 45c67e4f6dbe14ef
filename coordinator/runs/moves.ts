import type { OrgId, PoolId, RunId, RunnerId, VersionId } from '@windlass/shared/ids.ts'
import { assertMove, type FinalStatus, type RunError, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Tx } from '../db/client.ts'
import * as events from '../events/store.ts'

/** A locked run on its way to its next state. All writers of statuses and events meet here, so the rules stand once. */
export interface Moving {
  readonly id: RunId
  readonly orgId: OrgId
  readonly poolId: PoolId
  readonly versionId: VersionId
  readonly runnerId: RunnerId | null
  readonly epoch: number
  readonly priority: number
  readonly startedAt: Date | null
  status: RunStatus
  attempt: number
  cursor: number
  seq: number
  output: string | null
  error: RunError | null
  /** Milliseconds to add to what the run has computed so far. */
  computeMs: number
  started: boolean
  /** Set when the process is gone: the placement is deleted and the run is free for another. */
  released: boolean
  requeued: boolean
  readonly events: events.NewEvent[]
}

type LockedRow = Pick<Moving, 'id' | 'orgId' | 'poolId' | 'versionId' | 'runnerId' | 'epoch' | 'priority' | 'startedAt' | 'status' | 'attempt' | 'cursor' | 'seq'>

/** Locks runs in the order of their ids, so that two who want the same runs do not wait for each other in a circle. */
export async function lockRuns(tx: Tx, ids: readonly string[]): Promise<Map<string, Moving>> {
  const rows = await tx<LockedRow[]>`
    select id, org_id, pool_id, version_id, runner_id, epoch, priority, started_at, status, attempt, cursor, seq
    from runs
    where id = any(${[...new Set(ids)]})
    order by id
    for update`
  return new Map(rows.map((row) => [row.id, moving(row)]))
}

function moving(row: LockedRow): Moving {
  return { ...row, output: null, error: null, computeMs: 0, started: false, released: false, requeued: false, events: [] }
}

/** Adds an event to the log. The cursor is taken under the row's lock, so its order is the order of commits. */
export function emit(run: Moving, event: Pick<events.NewEvent, 'at' | 'channel' | 'type' | 'dataText'>): void {
  run.cursor++
  run.events.push({ runId: run.id, cursor: run.cursor, ...event })
}

/** Moves the run and says so in its log. */
export function move(run: Moving, to: RunStatus, at: number, data: Record<string, unknown> = {}): void {
  assertMove(run.status, to)
  run.status = to
  emit(run, { at, channel: 'lifecycle', type: `run.${to}`, dataText: JSON.stringify(data) })
}

export function finish(run: Moving, to: FinalStatus, at: number, data: Record<string, unknown> = {}): void {
  move(run, to, at, data)
  run.released = true
}

/** Back into the queue, to be executed from the top. */
export function requeue(run: Moving, at: number, data: Record<string, unknown>): void {
  move(run, 'queued', at, data)
  run.released = true
  run.requeued = true
}

/** Writes what has changed. One statement a table, sent together; the order is the one in which they execute. */
export async function saveMoves(tx: Tx, runs: Moving[]): Promise<void> {
  if (runs.length === 0) return
  const released = runs.filter((run) => run.released)
  const requeued = runs.filter((run) => run.requeued)
  const writes: PromiseLike<unknown>[] = [updateRuns(tx, runs), events.insert(tx, runs.flatMap((run) => run.events))]
  if (released.length > 0) writes.push(tx`delete from placements where run_id = any(${released.map((run) => run.id)})`)
  if (requeued.length > 0) {
    writes.push(tx`
      insert into run_queue (run_id, pool_id, priority)
      select * from unnest(${requeued.map((r) => r.id)}::text[], ${requeued.map((r) => r.poolId)}::text[], ${requeued.map((r) => r.priority)}::int[])`)
  }
  await Promise.all(writes)
}

function updateRuns(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  const onlyEvents = runs.every((run) => !run.started && !run.released && run.status !== 'cancelling')
  if (onlyEvents) {
    return tx`
      update runs
      set cursor = m.cursor, seq = m.seq
      from unnest(${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.cursor)}::int[], ${runs.map((r) => r.seq)}::int[]) as m (id, cursor, seq)
      where runs.id = m.id`
  }
  // Flags travel as 0 and 1: postgres.js takes an array of booleans for one boolean.
  return tx`
    update runs
    set
      status      = m.status,
      attempt     = m.attempt,
      cursor      = m.cursor,
      seq         = m.seq,
      output      = coalesce(m.output, runs.output),
      error       = coalesce(m.error, runs.error),
      compute_ms  = runs.compute_ms + m.compute_ms,
      started_at  = case when m.started = 1 then coalesce(runs.started_at, now()) else runs.started_at end,
      queued_at   = case when m.requeued = 1 then now() else runs.queued_at end,
      finished_at = case when m.status in ('completed', 'failed', 'cancelled') then coalesce(runs.finished_at, now()) end
    from unnest(
      ${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.status)}::text[], ${runs.map((r) => r.attempt)}::int[],
      ${runs.map((r) => r.cursor)}::int[], ${runs.map((r) => r.seq)}::int[], ${runs.map((r) => r.output)}::text[],
      ${runs.map((r) => (r.error ? JSON.stringify(r.error) : null))}::text[], ${runs.map((r) => Math.round(r.computeMs))}::bigint[],
      ${runs.map((r) => Number(r.started))}::int[], ${runs.map((r) => Number(r.requeued))}::int[]
    ) as m (id, status, attempt, cursor, seq, output, error, compute_ms, started, requeued)
    where runs.id = m.id`
}
