import type { OrgId, PoolId, RunId, VersionId, WorkflowId } from '@windlass/shared/ids.ts'
import type { RunStatus, TriggerKind } from '@windlass/shared/model/run.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import type { Moving, RunRow } from './row.ts'

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
  environment: string | null
  tags: string[]
  priority: number
  retryOf: RunId | null
  /** JSON text. */
  input: string
}

/**
 * Creates runs, their places in the queue and their first event in one statement. Ids are made by the caller, so a
 * statement whose commit was not heard of may run again and creates nothing twice.
 */
export async function insertQueued(db: Db, runs: NewRun[]): Promise<Map<string, Date>> {
  // Arrays of arrays must be rectangular in SQL: tags travel as JSON.
  const tags = runs.map((run) => (run.tags.length ? JSON.stringify(run.tags) : null))
  const rows = await db<{ id: string; createdAt: Date }[]>`
    with input as (
      select * from unnest(
        ${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.orgId)}::text[], ${runs.map((r) => r.workflowId)}::text[],
        ${runs.map((r) => r.versionId)}::text[], ${runs.map((r) => r.poolId)}::text[], ${runs.map((r) => r.triggerKind)}::text[],
        ${runs.map((r) => r.triggerId)}::text[], ${runs.map((r) => r.triggerActor)}::text[],
        ${runs.map((r) => r.environment)}::text[], ${tags}::text[], ${runs.map((r) => r.priority)}::int[],
        ${runs.map((r) => r.retryOf)}::text[], ${runs.map((r) => r.input)}::text[]
      ) as t (id, org_id, workflow_id, version_id, pool_id, trigger_kind, trigger_id, trigger_actor, environment, tags,
              priority, retry_of, input)
    ),
    created as (
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, cursor, trigger_kind, trigger_id, trigger_actor,
                        environment, tags, priority, retry_of, input)
      select id, org_id, workflow_id, version_id, pool_id, 'queued', 1, trigger_kind, trigger_id, trigger_actor,
             environment, coalesce((select array_agg(value) from json_array_elements_text(tags::json)), '{}'), priority, retry_of, input
      from input
      on conflict (id) do nothing
      returning id, pool_id, priority, created_at, trigger_kind
    ),
    queued as (
      insert into run_queue (run_id, pool_id, priority)
      select id, pool_id, priority
      from created
      order by id
    ),
    logged as (
      insert into run_events (run_id, cursor, at, channel, type, data)
      select id, 1, extract(epoch from created_at) * 1000, 'lifecycle', 'run.queued', json_build_object('trigger', trigger_kind)::text
      from created
    )
    select id, created_at from created`
  return new Map(rows.map((row) => [row.id, row.createdAt]))
}

/** When these runs were created; for a repeated `insertQueued` that found them there already. */
export async function createdAt(db: Db, ids: string[]): Promise<Map<string, Date>> {
  const rows = await db<{ id: string; createdAt: Date }[]>`select id, created_at from runs where id = any(${ids})`
  return new Map(rows.map((row) => [row.id, row.createdAt]))
}

const readable = (sql: Sql) => sql`
  select r.id, o.slug as org, r.org_id, r.workflow_id, w.slug as workflow_slug, v.version, r.version_id, r.pool_id,
         p.name as pool_name, r.status, r.attempt, r.epoch, r.cursor, r.runner_id, n.name as runner_name, r.trigger_kind,
         r.trigger_id, r.trigger_actor, r.environment, r.tags, r.priority, r.parent_run_id, r.root_run_id, r.retry_of,
         r.error, r.created_at, r.queued_at, r.claimed_at, r.started_at, r.finished_at, r.compute_ms, r.tokens_input,
         r.tokens_output, r.tokens_cached, r.tokens_reasoning, r.cost_micros
  from runs r
  join orgs o on o.id = r.org_id
  join workflows w on w.id = r.workflow_id
  join workflow_versions v on v.id = r.version_id
  join runner_pools p on p.id = r.pool_id
  left join runners n on n.id = r.runner_id`

export async function find(sql: Sql, orgId: OrgId, id: RunId): Promise<RunRow | undefined> {
  const [row] = await sql<RunRow[]>`${readable(sql)} where r.org_id = ${orgId} and r.id = ${id}`
  return row
}

export interface RunFilter {
  orgId: OrgId
  status?: RunStatus[] | undefined
  workflowId?: WorkflowId | undefined
  environment?: string | undefined
  trigger?: TriggerKind | undefined
  tag?: string | undefined
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  /** Only runs older than this one. */
  before?: string | undefined
  limit: number
}

/** Before 1970 there was no run; PostgreSQL's calendar ends some way before that of JavaScript. */
const time = (sql: Sql, ms: number) => sql`to_timestamp(${Math.max(0, ms)}::float8 / 1000)`

/** Newest first: ids sort by creation. */
export function list(db: Db, f: RunFilter): Promise<RunRow[]> {
  return db<RunRow[]>`
    ${readable(db)}
    where r.org_id = ${f.orgId}
    ${f.before ? db`and r.id < ${f.before}` : db``}
    ${f.status ? db`and r.status = any(${f.status})` : db``}
    ${f.workflowId ? db`and r.workflow_id = ${f.workflowId}` : db``}
    ${f.environment ? db`and r.environment = ${f.environment}` : db``}
    ${f.trigger ? db`and r.trigger_kind = ${f.trigger}` : db``}
    ${f.tag ? db`and ${f.tag} = any(r.tags)` : db``}
    ${f.createdAfter === undefined ? db`` : db`and r.created_at > ${time(db, f.createdAfter)}`}
    ${f.createdBefore === undefined ? db`` : db`and r.created_at < ${time(db, f.createdBefore)}`}
    order by r.id desc
    limit ${f.limit}`
}

/** The payloads, which no other read carries along. */
export async function payloads(db: Db, orgId: OrgId, id: RunId) {
  const [row] = await db<{ status: RunStatus; input: string; output: string | null }[]>`
    select status, input, output
    from runs
    where org_id = ${orgId} and id = ${id}`
  return row
}

/** Takes a run out of the queue. Claims lock the queue's row before the run's, so whoever wants both does the same. */
export async function leaveQueue(tx: Tx, id: RunId): Promise<void> {
  await tx`delete from run_queue where run_id = ${id}`
}

export async function noteCancel(tx: Tx, id: RunId, reason: string): Promise<void> {
  await tx`
    update runs
    set cancel_requested_at = coalesce(cancel_requested_at, now()), cancel_reason = coalesce(cancel_reason, ${reason})
    where id = ${id}`
}

export type LockedRow = Pick<
  Moving,
  | 'id'
  | 'orgId'
  | 'poolId'
  | 'versionId'
  | 'runnerId'
  | 'epoch'
  | 'priority'
  | 'startedAt'
  | 'status'
  | 'attempt'
  | 'cursor'
  | 'seq'
>

/** In the order of their ids, so that two who want the same runs do not wait for each other in a circle. */
export function lock(tx: Tx, ids: string[]): Promise<LockedRow[]> {
  return tx<LockedRow[]>`
    select id, org_id, pool_id, version_id, runner_id, epoch, priority, started_at, status, attempt, cursor, seq
    from runs
    where id = any(${ids})
    order by id
    for update`
}

/** Where only events were added. */
export function advance(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    update runs
    set cursor = m.cursor, seq = m.seq
    from unnest(${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.cursor)}::int[], ${runs.map((r) => r.seq)}::int[]) as m (id, cursor, seq)
    where runs.id = m.id`
}

export function update(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
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

/** The processes of these runs are gone. In the order of their ids, like all who lock placements. */
export function release(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    delete from placements p
    using unnest(${runs.map((run) => run.id).sort()}::text[]) as gone (run_id)
    where p.run_id = gone.run_id`
}

export function enterQueue(tx: Tx, runs: Moving[]): PromiseLike<unknown> {
  return tx`
    insert into run_queue (run_id, pool_id, priority)
    select * from unnest(${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.poolId)}::text[], ${runs.map((r) => r.priority)}::int[])`
}
