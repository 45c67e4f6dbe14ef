import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import { unnest } from '../db/unnest.ts'
import type { Level, SealedRow, Seat } from './row.ts'

/** Many seal at once, and while one of them is under way nobody changes the file of keys under it. */
export function lockKeys(tx: Tx, how: 'to seal' | 'to change'): PromiseLike<unknown> {
  return how === 'to seal'
    ? tx`select pg_advisory_xact_lock_shared(hashtextextended('windlass secret keys', 0))`
    : tx`select pg_advisory_xact_lock(hashtextextended('windlass secret keys', 0))`
}

/** As `lockKeys` to change. False: somebody seals or changes just now. */
export async function tryLockKeys(tx: Tx): Promise<boolean> {
  const [row] = await tx<[{ isLocked: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended('windlass secret keys', 0)) as is_locked`
  return row.isLocked
}

export interface PlacedRun {
  environment: string | null
  /** Null: it has not been claimed. */
  variableSetId: string | null
  /** The process that asks is still the one that the run is on. */
  lives: boolean
  /** Its environment exists, or it has none. */
  hasEnvironment: boolean
}

export async function findPlaced(
  sql: Sql,
  { orgId, runId, runnerId, epoch }: { orgId: OrgId; runId: RunId; runnerId: RunnerId; epoch: number },
): Promise<PlacedRun | undefined> {
  const [row] = await sql<PlacedRun[]>`
    select
      r.environment,
      r.variable_set_id,
      p.run_id is not null as lives,
      r.environment is null or e.id is not null as has_environment
    from runs r
    left join placements p
      on p.run_id = r.id and ${onlyFilters(sql, sql`p.epoch = ${epoch} and p.runner_id = ${runnerId}`)}
    left join environments e on e.org_id = r.org_id and e.name = r.environment
    where r.id = ${runId} and ${onlyFilters(sql, sql`r.org_id = ${orgId}`)}`
  return row
}

export interface EffectiveSecret extends SealedRow {
  /** It is the org's, and the environment has a variable of this name. */
  isHidden: boolean
}

/** The secrets of an environment over those of the org. */
export function effectiveSecrets(sql: Sql, { orgId, environment }: Level): Promise<EffectiveSecret[]> {
  return sql<EffectiveSecret[]>`
    select distinct on (s.name)
      s.org_id, s.environment, s.name, s.sealed,
      exists (
        select from variables v
        where v.org_id = s.org_id and v.environment = ${environment} and v.name = s.name and v.value is not null
      ) as is_hidden
    from variables s
    where s.org_id = ${orgId} and s.environment in ('', ${environment}) and s.sealed is not null
    order by s.name, s.environment desc`
}

export interface KeyUse {
  fingerprint: string
  secrets: number
}

/** Which keys the secrets of all orgs are sealed with. */
export function keysInUse(sql: Sql): Promise<KeyUse[]> {
  return sql<KeyUse[]>`
    select split_part(sealed, '.', 2) as fingerprint, count(*)::int as secrets
    from (
      select sealed from variables where sealed is not null
      union all
      select sealed from owned_secrets
    ) secrets
    group by 1
    order by 1`
}

/** The next secrets that are sealed with one of these keys. Nobody changes them until the end of `tx`. */
export function lockSealedWith(
  tx: Tx,
  fingerprints: readonly string[],
  { after, limit }: { after: Seat | undefined; limit: number },
): Promise<SealedRow[]> {
  return tx<SealedRow[]>`
    select org_id, environment, name, sealed
    from variables
    where sealed is not null and split_part(sealed, '.', 2) = any(${[...fingerprints]})
      and (org_id, environment, name) > (${after?.orgId ?? ''}, ${after?.environment ?? ''}, ${after?.name ?? ''})
    order by org_id, environment, name
    limit ${limit}
    for update`
}

/** No change of the secret: who set it, and when, stays. */
export async function reseal(tx: Tx, rows: readonly SealedRow[]): Promise<void> {
  await tx`
    update variables v
    set sealed = r.sealed
    from ${unnest(tx, 'r', rows, { orgId: 'text', environment: 'text', name: 'text', sealed: 'text' })}
    where v.org_id = r.org_id and v.environment = r.environment and v.name = r.name`
}
