import type { OrgId, PoolId, RunId, VersionId, WorkflowId } from '@windlass/shared/ids.ts'
import type { TriggerKind } from '@windlass/shared/model/run.ts'
import type { Sql, Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import { tellOrgs } from '../../events/store.ts'
import { type Holds, type Throttle, writeHolds } from '../rules/holds.ts'

/** A run about to be created. */
export interface NewRun {
  id: RunId
  orgId: OrgId
  workflowId: WorkflowId
  versionId: VersionId
  poolId: PoolId
  triggerKind: TriggerKind
  triggerId: string | null
  triggerActor: string | null
  /** The tick of a schedule that it is started for, in milliseconds since the epoch, and by how much that was late. */
  tick: Tick | null
  environment: string | null
  tags: string[]
  priority: number
  retryOf: RunId | null
  parentRunId: RunId | null
  /** Number of the call in the journal of the parent. */
  parentEntry: number | null
  rootRunId: RunId | null
  depth: number
  /** It enters the queue so much later. */
  delayMs: number
  /** From entering the queue on. */
  queueTimeoutMs: number | null
  /** From its creation on. */
  wallTimeoutMs: number | null
  /** The groups that it is counted in where its descriptor limits concurrency, as text. */
  concurrencyGroup: string | null
  /** What limits how many may enter the queue within a time. Without `waitMs` it takes its turn when its delay ends. */
  throttle: (Throttle & { waitMs?: number }) | null
  /** Calls with the same key are merged into it while it waits. Its delay is that wait. */
  debounce: Debounce | null
  /** What it needs of its runner, as the queue has it. */
  needs: string
  /** JSON text. */
  input: string
}

export interface Tick {
  how: 'due' | 'caught-up' | 'manual'
  at: number
  lateMs: number
}

/** What a descriptor says about merging, and which calls are merged. */
export interface Debounce {
  key: string
  waitMs: number
  maxWaitMs: number
}

/** How much later than its creation a run enters the queue, or takes its turn there. */
export const entersInMs = ({ delayMs, throttle }: NewRun) => delayMs || (throttle?.waitMs ?? 0)

/** Whether nothing holds a run back but a limit of concurrency. */
export const isDue = ({ delayMs, throttle }: NewRun) => delayMs === 0 && (throttle === null || throttle.waitMs === 0)

/** Whether a run is in the queue as soon as it exists: nothing delays it, and it need not be counted first. */
const entersAtOnce = (run: NewRun) => isDue(run) && run.concurrencyGroup === null

/** What becomes due by itself for a run that is new. */
function timersOf(run: NewRun) {
  const { id: runId, orgId, queueTimeoutMs, wallTimeoutMs } = run
  const timers: { runId: RunId; orgId: OrgId; kind: string; inMs: number; holds: string | null }[] = []
  const add = (kind: string, inMs: number, holds: string | null = null) =>
    void timers.push({ runId, orgId, kind, inMs, holds })
  if (!isDue(run)) add('enqueue', entersInMs(run), holdsOf(run, 0))
  if (queueTimeoutMs !== null) add('queue-timeout', entersInMs(run) + queueTimeoutMs)
  if (wallTimeoutMs !== null) add('wall-timeout', wallTimeoutMs)
  return timers
}

/** What a new run waits for, into which so many calls were merged. */
export function holdsOf({ throttle, debounce }: NewRun, merged: number): string | null {
  const holds: Holds = {}
  if (throttle) {
    const { key, limit, perMs, waitMs } = throttle
    holds.throttle = { key, limit, perMs, isTaken: waitMs !== undefined }
  }
  if (debounce) holds.debounce = { merged }
  return writeHolds(holds)
}

/**
 * Creates runs, their places in the queue, their timers and their first event in one statement. Ids are made by the caller, so a
 * statement whose commit was not heard of may run again and creates nothing twice. Runs with a concurrency group get no place in the
 * queue here: `rebalance` lets them in.
 */
export async function insertQueued(sql: Sql, runs: readonly NewRun[]): Promise<Map<string, Date>> {
  const held = runs.filter((run) => !entersAtOnce(run)).map((run) => run.id)
  const timers = runs.flatMap(timersOf)
  const rows = await sql<{ id: string; createdAt: Date }[]>`
    with input as (
      select *
      from ${unnest(sql, 't', runs, {
        id: 'text',
        orgId: 'text',
        workflowId: 'text',
        versionId: 'text',
        poolId: 'text',
        triggerKind: 'text',
        triggerId: 'text',
        triggerActor: 'text',
        tick: ['text', (run) => run.tick?.how ?? null],
        tickAt: ['float8', (run) => run.tick?.at ?? null],
        tickLate: ['float8', (run) => run.tick?.lateMs ?? null],
        environment: 'text',
        // Arrays of arrays must be rectangular in SQL: tags travel as JSON.
        tags: ['text', (run) => (run.tags.length ? JSON.stringify(run.tags) : null)],
        priority: 'int',
        retryOf: 'text',
        parentRunId: 'text',
        parentEntry: 'int',
        rootRunId: 'text',
        depth: 'int',
        concurrencyGroup: 'text',
        needs: 'text',
        input: 'text',
        entersInMs: ['float8', entersInMs],
      })}
    ),
    created as (
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, cursor, trigger_kind, trigger_id, trigger_actor,
                        tick, tick_at, tick_late, environment, tags, priority, retry_of, parent_run_id, parent_entry,
                        root_run_id, depth,
                        concurrency_group, needs, input, queued_at)
      select id, org_id, workflow_id, version_id, pool_id, 'queued', 1, trigger_kind, trigger_id, trigger_actor,
             tick, to_timestamp(tick_at / 1000), tick_late, environment,
             coalesce((select array_agg(value) from json_array_elements_text(tags::json)), '{}'), priority, retry_of,
             parent_run_id, parent_entry, root_run_id, depth, concurrency_group, needs, input,
             now() + enters_in_ms * interval '1 millisecond'
      from input
      on conflict (id) do nothing
      returning id, org_id, pool_id, environment, priority, needs, tags, created_at, trigger_kind, trigger_id
    ),
    queued as (
      insert into run_queue (run_id, pool_id, priority, needs)
      select id, pool_id, priority, needs
      from created
      where id <> all(${held}::text[])
      order by id
    ),
    tagged as (
      insert into run_tags (org_id, tag, run_id)
      select distinct org_id, unnest(tags), id
      from created
      where tags <> '{}'
    ),
    remaining as (${noteLate(sql)}),
    timed as (
      insert into timers (run_id, org_id, kind, due_at, holds)
      select run_id, org_id, kind, now() + in_ms * interval '1 millisecond', holds
      from ${unnest(sql, 't', timers, { runId: 'text', orgId: 'text', kind: 'text', inMs: 'float8', holds: 'text' })}
      where run_id = any(array(select id from created))
    ),
    news as (
      select org_id, id as run_id, 1 as cursor, extract(epoch from created_at) * 1000 as at, 'run.queued' as type,
             json_build_object('trigger', trigger_kind)::text as data
      from created
    ),
    logged as (
      insert into run_events (run_id, cursor, at, channel, type, data)
      select run_id, cursor, at, 'lifecycle', type, data from news
    ),
    told as (${tellOrgs(sql, sql`news`)})
    select id, created_at from created`
  return new Map(rows.map((row) => [row.id, row.createdAt]))
}

/** Of those created, what a slow clock has made: the mark has passed them already, and nobody would look there. */
const noteLate = (sql: Sql) => sql`
  insert into runs_remaining (run_id, org_id, trigger_id, environment, pool_id)
  select id, org_id, coalesce(trigger_id, ''), environment, pool_id
  from created
  where id <= (select run_id from sweep_mark)
  on conflict (run_id) do nothing`

/** Those of these runs that exist. */
export async function idsThere(tx: Tx, ids: readonly RunId[]): Promise<Set<RunId>> {
  const rows = await tx<{ id: RunId }[]>`select id from runs where id = any(${[...ids]})`
  return new Set(rows.map(({ id }) => id))
}

/** When these runs were created; for a repeated `insertQueued` that found them there already. */
export async function createdAt(sql: Sql, ids: string[]): Promise<Map<string, Date>> {
  const rows = await sql<{ id: string; createdAt: Date }[]>`select id, created_at from runs where id = any(${ids})`
  return new Map(rows.map((row) => [row.id, row.createdAt]))
}
