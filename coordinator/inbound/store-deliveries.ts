import type { OrgId } from '@windlass/shared/ids.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { idBounds, instant } from '../db/ids-at.ts'
import { type Fragment, newest } from '../db/newest.ts'
import { unnest } from '../db/unnest.ts'
import type { DeliveryRow, WholeDeliveryRow } from './row.ts'
import { matchesOf } from './store-matches.ts'

export type NewDeliveryRow = Omit<WholeDeliveryRow, 'matches'>

/** Answers the ids that were not there. One that was: only the answer of its commit was lost. */
export async function insertDeliveries(tx: Tx, rows: readonly NewDeliveryRow[]): Promise<Set<string>> {
  const inserted = await tx<{ id: string }[]>`
    insert into deliveries (id, org_id, source_id, source_name, received_at, outcome, reason, event, replay_of,
                            attempts, method, query, headers, content_type, payload, payload_key, payload_bytes, is_cut)
    select id, org_id, source_id, source_name, to_timestamp(received_at / 1000), outcome, reason, event, replay_of,
           attempts, method, query, headers, content_type, decode(payload, 'base64'), payload_key,
           payload_bytes, is_cut = 1
    from ${unnest(tx, 't', rows, {
      id: 'text',
      orgId: 'text',
      sourceId: 'text',
      sourceName: 'text',
      outcome: 'text',
      reason: 'text',
      event: 'text',
      replayOf: 'text',
      attempts: 'int',
      method: 'text',
      query: 'text',
      headers: 'text',
      contentType: 'text',
      payloadKey: 'text',
      payloadBytes: 'int',
      receivedAt: ['float8', (row) => row.receivedAt.getTime()],
      payload: ['text', (row) => row.payload?.toString('base64')],
      isCut: ['int', (row) => Number(row.isCut)],
    })}
    on conflict (id) do nothing
    returning id`
  return new Set(inserted.map(({ id }) => id))
}

/**
 * Each source keeps its newest unverified deliveries: a flood must not hide what came last. As many of each sort: whole
 * ones, those of which only the head is kept, and rows that count others.
 */
export async function trimUnverified(tx: Tx, sourceIds: readonly string[], most: number): Promise<void> {
  await tx`
    delete from deliveries d
    using unnest(${[...sourceIds]}::text[]) as s (id)
    cross join lateral (
      select id, row_number() over (partition by is_cut, is_cut and payload_bytes = 0 order by id desc) as n
      from deliveries
      where source_id = s.id and outcome = 'unverified'
    ) old
    where d.id = old.id and old.n > ${most}`
}

/** A row that counts others says how many there are by now. */
export async function setReason(
  db: Db,
  { orgId }: { orgId: OrgId },
  { id, reason }: { id: string; reason: string },
): Promise<void> {
  await db`update deliveries set reason = ${reason} where id = ${id} and ${onlyFilters(db, db`org_id = ${orgId}`)}`
}

const PORTION = 1000

/** Unverified deliveries from before so many days. */
export async function removeUnverified(db: Db, days: number): Promise<void> {
  for (;;) {
    const { count } = await db`
      delete from deliveries
      where id = any(array(
        select id
        from deliveries
        where outcome = 'unverified' and received_at < now() - ${days} * interval '1 day'
        limit ${PORTION}
      ))`
    if (count < PORTION) return
  }
}

const columns = (sql: Sql) => sql`
  d.id, d.org_id, d.source_id, d.source_name, d.received_at, d.outcome, d.reason, d.event, d.replay_of, d.attempts`

/** What became of those of these deliveries that are there. */
export async function outcomesOf(
  db: Db,
  ids: readonly string[],
): Promise<Pick<DeliveryRow, 'id' | 'outcome' | 'reason' | 'matches'>[]> {
  return db<Pick<DeliveryRow, 'id' | 'outcome' | 'reason' | 'matches'>[]>`
    select d.id, d.outcome, d.reason, (${matchesOf(db)}) as matches
    from deliveries d
    where d.id = any(${[...ids]})`
}

export async function findDelivery(sql: Sql, orgId: OrgId, id: string): Promise<WholeDeliveryRow | undefined> {
  const [row] = await sql<WholeDeliveryRow[]>`
    select ${columns(sql)}, (${matchesOf(sql)}) as matches, d.method, d.query, d.headers, d.content_type, d.payload,
           d.payload_key, d.payload_bytes, d.is_cut
    from deliveries d
    where d.id = ${id} and ${onlyFilters(sql, sql`d.org_id = ${orgId}`)}`
  return row
}

/** What became of it has to be read apart. */
export type BareDeliveryRow = Omit<DeliveryRow, 'matches'>

export interface DeliveryFilter {
  orgId: OrgId
  workflowId?: string | undefined
  sourceId?: string | undefined
  outcome?: DeliveryOutcome | undefined
  /** Milliseconds since the epoch; neither is counted in. */
  createdAfter?: number | undefined
  createdBefore?: number | undefined
  before?: string | undefined
  limit: number
}

/** Newest first, by the index of the narrowest filter. */
export function listDeliveries(db: Db, f: DeliveryFilter): Promise<BareDeliveryRow[]> {
  const { workflowId } = f
  if (workflowId !== undefined) return listOfWorkflow(db, { ...f, workflowId })
  const { where, order } = newest(db, { ...startOf(db, f), ...bounds(f) })
  return db<BareDeliveryRow[]>`
    select ${columns(db)}
    from deliveries d
    where ${where} ${outcomeIs(db, db`d.outcome`, f)} ${receivedIn(db, f)}
    order by ${order}
    limit ${f.limit}`
}

type OfWorkflow = DeliveryFilter & { workflowId: string }

/**
 * What was decided for a workflow, and what came in at its own webhook: of that what was not verified, or was too much,
 * is decided for no workflow. Each is read in the order of an index, up to the limit.
 */
function listOfWorkflow(db: Db, f: OfWorkflow): Promise<BareDeliveryRow[]> {
  const { orgId, workflowId, sourceId, limit } = f
  const decided = newest(db, {
    columns: [db`x.org_id`, db`x.workflow_id`],
    values: [orgId, workflowId],
    id: db`x.delivery_id`,
    ...bounds(f),
  })
  const from = sourceId === undefined ? db`` : db`and ${onlyFilters(db, db`d.source_id = ${sourceId}`)}`
  return db<BareDeliveryRow[]>`
    select ${columns(db)}
    from (
      (
        select d.id
        from delivery_matches x
        join deliveries d on d.id = x.delivery_id
        where ${decided.where} ${outcomeIs(db, db`x.outcome`, f)} ${from} ${receivedIn(db, f)}
        order by ${decided.order}
        limit ${limit}
      )
      ${sourceId === undefined ? db`union (${ofItsHook(db, f)})` : db``}
    ) found
    cross join lateral (select * from deliveries where deliveries.id = found.id offset 0) d
    order by found.id desc
    limit ${limit}`
}

/** A delivery at a webhook is decided for its one workflow as it is as a whole. */
function ofItsHook(db: Db, f: OfWorkflow): Fragment {
  const hook = db`(select id from webhooks where workflow_id = ${f.workflowId} and org_id = ${f.orgId})`
  const { where, order } = newest(db, {
    columns: [db`d.org_id`, db`d.source_id`],
    values: [f.orgId, hook],
    id: db`d.id`,
    ...bounds(f),
  })
  return db`
    select d.id
    from deliveries d
    where ${where} ${outcomeIs(db, db`d.outcome`, f)} ${receivedIn(db, f)}
    order by ${order}
    limit ${f.limit}`
}

const bounds = (f: DeliveryFilter) =>
  idBounds('dlv', { before: f.before, since: f.createdAfter, until: f.createdBefore })

/** Where the index that is read does not say it already, this only filters. */
function outcomeIs(db: Db, column: Fragment, { outcome }: DeliveryFilter): Fragment {
  return outcome === undefined ? db`` : db`and ${onlyFilters(db, db`${column} = ${outcome}`)}`
}

function receivedIn(db: Db, { createdAfter, createdBefore }: DeliveryFilter): Fragment {
  const after = createdAfter === undefined ? db`` : db`and (d.received_at >= ${instant(db, createdAfter + 1)}) is true`
  const before = createdBefore === undefined ? db`` : db`and (d.received_at < ${instant(db, createdBefore)}) is true`
  return db`${after} ${before}`
}

function startOf(db: Db, { orgId, sourceId, outcome }: DeliveryFilter) {
  const id = db`d.id`
  if (sourceId !== undefined) return { columns: [db`d.org_id`, db`d.source_id`], values: [orgId, sourceId], id }
  if (outcome !== undefined) return { columns: [db`d.org_id`, db`d.outcome`], values: [orgId, outcome], id }
  return { columns: [db`d.org_id`], values: [orgId], id }
}

/** More of a chain of replays are not followed. */
const MOST_REPLAYS = 1000

/** When the delivery came in that this one is a replay of, or the oldest of its chain that is kept. */
export async function firstReceivedAt(sql: Sql, orgId: OrgId, id: string): Promise<Date | undefined> {
  const [row] = await sql<{ receivedAt: Date }[]>`
    with recursive chain as (
      select replay_of, received_at, 1 as n
      from deliveries
      where id = ${id} and ${onlyFilters(sql, sql`org_id = ${orgId}`)}
      union all
      select d.replay_of, d.received_at, chain.n + 1
      from chain
      cross join lateral (select * from deliveries where deliveries.id = chain.replay_of offset 0) d
      where chain.n < ${MOST_REPLAYS} and d.org_id = ${orgId}
    )
    select received_at
    from chain
    order by n desc
    limit 1`
  return row?.receivedAt
}

export async function isThere(sql: Sql, orgId: OrgId, id: string): Promise<boolean> {
  const rows = await sql`
    select from deliveries where id = ${id} and ${onlyFilters(sql, sql`org_id = ${orgId}`)}`
  return rows.length > 0
}

/** When a source last had a delivery that was verified. */
export async function lastVerified(sql: Sql, orgId: OrgId, sourceId: string): Promise<Date | null> {
  const [row] = await sql<{ receivedAt: Date }[]>`
    select received_at
    from deliveries
    where org_id = ${orgId} and source_id = ${sourceId} and coalesce(outcome <> 'unverified', false)
    order by org_id desc, source_id desc, id desc
    limit 1`
  return row?.receivedAt ?? null
}
