import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { EffectiveIsolation, IntakeState, OnDeadline, Unready } from '@windlass/shared/model/runner.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Fragment } from '../db/newest.ts'

export interface PoolRow {
  id: PoolId
  org: string
  name: string
  /** What is set; the rest has its default. */
  settings: object
  createdAt: Date
  runners: number
  queuedRuns: number
}

const pools = (sql: Sql) => sql`
  select p.id, o.slug as org, p.name, p.settings, p.created_at,
         (select count(*)::int from runners r where r.pool_id = p.id and r.deregistered_at is null) as runners,
         (select count(*)::int from run_queue q where q.pool_id = p.id) as queued_runs
  from runner_pools p
  join orgs o on o.id = p.org_id`

export function listPools(
  db: Db,
  orgId: OrgId,
  page: { after: string | undefined; limit: number },
): Promise<PoolRow[]> {
  return db<PoolRow[]>`
    ${pools(db)}
    where p.org_id = ${orgId} and p.deleted_at is null
    ${page.after ? db`and p.id > ${page.after}` : db``}
    order by p.id
    limit ${page.limit}`
}

/** The pool `p` by its id or its name, which is never taken for an id: it has no underscore. */
export const isMeant = (sql: Sql, orgId: OrgId, pool: string) =>
  pool.includes('_')
    ? sql`p.id = ${pool} and ${onlyFilters(sql, sql`p.org_id = ${orgId}`)}`
    : sql`p.org_id = ${orgId} and p.name = ${pool}`

export async function findPool(sql: Sql, orgId: OrgId, pool: string): Promise<PoolRow | undefined> {
  const [row] = await sql<PoolRow[]>`
    ${pools(sql)}
    where ${isMeant(sql, orgId, pool)} and p.deleted_at is null`
  return row
}

export interface NewToken {
  id: string
  poolId: PoolId
  hash: Buffer
  uses: number
  ttlMs: number
  createdBy: string
}

export async function insertToken(sql: Sql, token: NewToken): Promise<Date> {
  const [row] = await sql<[{ expiresAt: Date }]>`
    insert into registration_tokens (id, pool_id, hash, uses_left, created_by, expires_at)
    values (${token.id}, ${token.poolId}, ${token.hash}, ${token.uses}, ${token.createdBy},
            now() + ${token.ttlMs} * interval '1 millisecond')
    returning expires_at`
  return row.expiresAt
}

export interface TokenRow {
  id: string
  poolId: PoolId
  pool: string
  orgId: OrgId
  org: string
  usesLeft: number
  hash: Buffer
}

const tokens = (sql: Sql, hashes: Fragment) => sql`
  select t.id, t.pool_id, p.name as pool, p.org_id, o.slug as org, t.uses_left, t.hash
  from registration_tokens t
  join runner_pools p on p.id = t.pool_id
  join orgs o on o.id = p.org_id
  where t.hash in (${hashes}) and t.expires_at > now() and p.deleted_at is null`

/** The tokens with these hashes, in their order; undefined where there is none, or it has expired. */
export async function findTokens(db: Db, hashes: readonly Buffer[]): Promise<(TokenRow | undefined)[]> {
  const asked = hashes.map((hash) => hash.toString('hex'))
  const rows = await db<TokenRow[]>`
    ${tokens(db, db`select decode(hex, 'hex') from unnest(${asked}::text[]) as asked (hex)`)}`
  const found = new Map(rows.map((row) => [row.hash.toString('hex'), row]))
  return asked.map((hex) => found.get(hex))
}

/** One of them under lock. Two agents with the last use of one token come one after the other. */
export async function lockToken(tx: Tx, hash: Buffer): Promise<TokenRow | undefined> {
  const [row] = await tx<TokenRow[]>`${tokens(tx, tx`${hash}`)} for update of t`
  return row
}

export async function useToken(tx: Tx, hash: Buffer): Promise<void> {
  await tx`update registration_tokens set uses_left = uses_left - 1 where hash = ${hash}`
}

/** Tokens removed in one statement: a key may leave more than a million of them. */
const PORTION = 5000

/** Rows that can serve nobody any more. */
export async function deleteDeadTokens(db: Db): Promise<number> {
  let removed = 0
  for (let after: string | null = ''; after !== null;) {
    const [row]: { last: string | null; removed: number }[] = await db`
      with portion as materialized (
        select id
        from registration_tokens
        where expires_at < now() - interval '1 day' and id > ${after}
        order by id
        limit ${PORTION}
      ),
      gone as (
        delete from registration_tokens t using portion where t.id = portion.id returning t.id
      )
      select (select max(id) from portion) as last, (select count(*)::int from gone) as removed`
    after = row!.last
    removed += row!.removed
  }
  return removed
}

/** Number of runners of an org that have not been deregistered, counted up to `most`. */
export async function countRunners(tx: Tx, orgId: OrgId, most: number): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::int as count
    from (select from runners where org_id = ${orgId} and deregistered_at is null limit ${most}) r`
  return row.count
}

export interface NewRunner {
  id: RunnerId
  orgId: OrgId
  poolId: PoolId
  name: string
  publicKey: Record<string, string>
  labels: string[]
  slots: number
  version: string
  platform: string
  /** The token by which it came in. */
  registeredBy: string
}

/**
 * The runner that came in by this token with this key. Not one that has connected: its agent has had its answer, and who
 * asks has a copy of its key.
 */
export async function findRegistered(
  sql: Sql,
  registeredBy: string,
  publicKey: Record<string, string>,
): Promise<RunnerId | undefined> {
  const [row] = await sql<{ id: RunnerId }[]>`
    select id from runners
    where registered_by = ${registeredBy} and public_key->>'x' = ${publicKey.x!}
      and last_heartbeat_at is null and deregistered_at is null`
  return row?.id
}

export async function insertRunner(tx: Tx, r: NewRunner): Promise<void> {
  await tx`
    insert into runners (id, org_id, pool_id, name, public_key, labels, slots, version, platform, registered_by)
    values (${r.id}, ${r.orgId}, ${r.poolId}, ${r.name}, ${tx.json(r.publicKey)}, ${r.labels}, ${r.slots}, ${r.version},
            ${r.platform}, ${r.registeredBy})`
  await tx`insert into runner_intake (runner_id) values (${r.id})`
}

export interface RunnerRow {
  id: RunnerId
  org: string
  poolId: PoolId
  poolName: string
  poolSettings: object
  name: string
  online: boolean
  now: Date
  state: 'open' | 'cordoned' | 'draining' | 'revoked'
  epoch: number
  since: Date
  byKind: 'caller' | 'agent' | 'system' | null
  byName: string | null
  reason: string
  deadlineAt: Date | null
  onDeadline: OnDeadline | null
  quarantinedAt: Date | null
  quarantinedUntil: Date | null
  quarantineReason: string | null
  unready: Unready[]
  isolation: EffectiveIsolation | null
  labels: string[]
  slots: number
  activeRuns: number
  offered: number
  executing: number
  parked: number
  currentRuns: RunId[]
  version: string
  protocol: number
  platform: string
  createdAt: Date
  lastPollAt: Date | null
  lastHeartbeatAt: Date | null
  copyRefusedAt: Date | null
}

/** 60 s: two polls and six heartbeats fit into it, so one lost sign of life does not make a runner look gone. */
export const online = (sql: Sql) =>
  sql`(greatest(r.last_poll_at, r.last_heartbeat_at) > now() - interval '60 seconds') is true`

const runners = (sql: Sql) => sql`
  select r.id, o.slug as org, r.pool_id, p.name as pool_name, p.settings as pool_settings, r.name, ${online(sql)} as online, now() as now,
         i.state, i.epoch, i.since, i.by_kind, i.by_name, i.reason, i.deadline_at, i.on_deadline,
         i.quarantined_at, i.quarantined_until, i.quarantine_reason,
         r.unready, r.isolation, r.labels, r.slots, held.*, r.version, r.protocol, r.platform,
         r.created_at, r.last_poll_at, r.last_heartbeat_at, r.copy_refused_at
  from runners r
  join runner_intake i on i.runner_id = r.id
  join runner_pools p on p.id = r.pool_id
  join orgs o on o.id = r.org_id
  cross join lateral (
    select count(*) filter (where l.accepted_at is not null)::int as active_runs,
           count(*) filter (where l.accepted_at is null)::int as offered,
           count(*) filter (where l.accepted_at is not null and run.place is distinct from 'parked')::int as executing,
           count(*) filter (where l.accepted_at is not null and run.place = 'parked')::int as parked,
           coalesce((array_agg(l.run_id order by l.run_id))[1:20], '{}') as current_runs
    from placements l
    join runs run on run.id = l.run_id
    where l.runner_id = r.id
  ) held`

export async function findRunner(sql: Sql, orgId: OrgId, id: RunnerId): Promise<RunnerRow | undefined> {
  const [row] = await sql<
    RunnerRow[]
  >`${runners(sql)} where r.id = ${id} and ${onlyFilters(sql, sql`r.org_id = ${orgId}`)} and r.deregistered_at is null`
  return row
}

/** A drain is over as soon as nothing is left on the runner. */
function isSo(sql: Sql, intake: IntakeState) {
  if (intake !== 'draining' && intake !== 'drained') return sql`and i.state = ${intake}`
  const hasRuns = sql`exists (select from placements l where l.runner_id = r.id)`
  return sql`and i.state = 'draining' and ${hasRuns} = ${intake === 'draining'}`
}

export interface RunnerFilter {
  orgId: OrgId
  pool: string | undefined
  status: 'online' | 'offline' | undefined
  intake?: IntakeState | undefined
  after: string | undefined
  limit: number
}

export function listRunners(db: Db, f: RunnerFilter): Promise<RunnerRow[]> {
  return db<RunnerRow[]>`
    ${runners(db)}
    where r.org_id = ${f.orgId} and r.deregistered_at is null
    ${f.pool ? db`and (p.id = ${f.pool} or p.name = ${f.pool})` : db``}
    ${f.status ? db`and ${online(db)} = ${f.status === 'online'}` : db``}
    ${f.intake ? isSo(db, f.intake) : db``}
    ${f.after ? db`and r.id > ${f.after}` : db``}
    order by r.id
    limit ${f.limit}`
}

export async function notePolls(db: Db, ids: string[]): Promise<void> {
  await db`update runners set last_poll_at = now() where id = any(${ids})`
}
