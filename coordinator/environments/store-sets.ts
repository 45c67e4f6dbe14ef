import type { Db, Sql, Tx } from '../db/client.ts'
import { runById } from '../db/by-key.ts'
import { unfinishedRuns } from '../db/unfinished.ts'
import type { Level } from './row.ts'

/**
 * Makes the sets anew that a change on this level concerns: that of the environment, or with the base those of all. A
 * set that would be like one in use is that one. The caller holds the lock of the org.
 */
export async function refreshHeads(tx: Tx, { orgId, environment }: Level): Promise<void> {
  await tx`
    with concerned as (
      select '' collate "C" as environment where ${environment}::text = ''
      union all
      select name from environments where org_id = ${orgId} and ${environment}::text in ('', name)
    ),
    effective as (
      -- The name of the org's own level sorts before all others. An environment without any has one row, of nulls.
      select distinct on (c.environment, v.name) c.environment, v.name, v.value
      from concerned c
      left join variables v on v.org_id = ${orgId} and v.environment in ('', c.environment)
      order by c.environment, v.name, v.environment desc
    ),
    given as (
      select
        environment,
        coalesce((json_object_agg(name, value order by name) filter (where value is not null))::text, '{}') as variables
      from effective
      group by environment
    ),
    -- Told apart by their digests: each of two hundred may be as long as all that an org may set.
    wanted as materialized (
      select
        environment,
        variables,
        sha256(convert_to(variables, 'UTF8')) as digest,
        -- Also one that a variable hides: a run that has started without that variable gets the secret.
        exists (
          select from variables s
          where s.org_id = ${orgId} and s.environment in ('', given.environment) and s.sealed is not null
        ) as has_secrets
      from given
    ),
    kept as materialized (
      select min(id) as id, sha256(convert_to(variables::text, 'UTF8')) as digest
      from variable_sets
      where org_id = ${orgId} and retired_at is null
      group by 2
    ),
    created as (
      insert into variable_sets (org_id, variables)
      select ${orgId}, w.variables::json
      from (select distinct on (digest) digest, variables from wanted) w
      where not exists (select from kept where kept.digest = w.digest)
      returning id, sha256(convert_to(variables::text, 'UTF8')) as digest
    )
    insert into variable_heads (org_id, environment, set_id, has_secrets)
    select ${orgId}, w.environment, coalesce(kept.id, created.id), w.has_secrets
    from wanted w
    left join kept on kept.digest = w.digest
    left join created on created.digest = w.digest
    on conflict (org_id, environment) do update set set_id = excluded.set_id, has_secrets = excluded.has_secrets`
  await retireSets(tx, orgId)
}

/** Sets that no environment of the org has any more. Runs may have started with them. */
export async function retireSets(tx: Tx, orgId: Level['orgId']): Promise<void> {
  await tx`
    update variable_sets s
    set retired_at = now()
    where s.org_id = ${orgId} and s.retired_at is null
      and not exists (select from variable_heads h where h.org_id = s.org_id and h.set_id = s.id)`
}

export async function variablesOf(sql: Sql, id: string): Promise<string | undefined> {
  const [row] = await sql<
    { variables: string }[]
  >`select variables::text as variables from variable_sets where id = ${id}`
  return row?.variables
}

/**
 * Removes what was retired an hour ago and no unfinished run has. A claim may have read the head just before it was
 * changed; no statement takes an hour.
 */
export async function removeRetired(db: Db): Promise<number> {
  const rows = await db`
    with used as materialized (
      select distinct r.variable_set_id as id
      from (${unfinishedRuns(db)}) candidates
      cross join lateral (${runById(db, db`candidates.id`)}) r
      where r.finished_at is null and r.variable_set_id > 0
    )
    delete from variable_sets s
    where s.retired_at < now() - interval '1 hour'
      and not exists (select from used where used.id = s.id)
      and not exists (select from variable_heads h where h.set_id = s.id)
    returning s.id`
  return rows.length
}
