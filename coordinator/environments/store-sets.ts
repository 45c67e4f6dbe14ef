import type { Db, Sql, Tx } from '../db/client.ts'
import { runById } from '../db/by-key.ts'
import type { Level } from './row.ts'

/**
 * Makes the sets anew that a change on this level concerns: that of the environment, or with the base those of all. A
 * set is the text of the base with that of the environment, so that a change writes one text. The caller holds the lock
 * of the org.
 */
export async function refreshHeads(tx: Tx, { orgId, environment }: Level, texts: LevelTexts): Promise<void> {
  await tx`
    with concerned as (
      select '' collate "C" as environment where ${environment}::text = ''
      union all
      select name from environments where org_id = ${orgId} and ${environment}::text in ('', name)
    ),
    base as (
      select case
        when ${environment}::text = '' then ${texts.level}::bigint
        else coalesce(
          (select text_id from variable_heads where org_id = ${orgId} and environment = ''), ${texts.empty}::bigint
        )
      end as id
    ),
    wanted as (
      select
        c.environment,
        case
          when c.environment = ${environment} then ${texts.level}::bigint
          else coalesce(h.text_id, ${texts.empty}::bigint)
        end as text_id,
        base.id as base_id,
        -- Also one that a variable hides: a run that has started without that variable gets the secret.
        exists (
          select from variables s
          where s.org_id = ${orgId} and s.environment in ('', c.environment) and s.sealed is not null
        ) as has_secrets
      from concerned c
      cross join base
      left join variable_heads h on h.org_id = ${orgId} and h.environment = c.environment
    ),
    paired as materialized (
      select *, case when environment = '' then ${texts.empty}::bigint else text_id end as own_id from wanted
    ),
    -- Also those that were retired of late: values that change to and fro make no new ones each time. What was retired
    -- for longer may just be removed.
    kept as materialized (
      select min(s.id) as id, s.base_id, s.own_id
      from variable_sets s
      where s.org_id = ${orgId} and (s.retired_at is null or s.retired_at > now() - interval '50 minutes')
      group by s.base_id, s.own_id
    ),
    revived as (
      update variable_sets s
      set retired_at = null
      from kept k
      join paired p on p.base_id = k.base_id and p.own_id = k.own_id
      where s.id = k.id and s.retired_at is not null
    ),
    created as (
      insert into variable_sets (org_id, base_id, own_id)
      select distinct ${orgId}, p.base_id, p.own_id
      from paired p
      where not exists (select from kept k where k.base_id = p.base_id and k.own_id = p.own_id)
      returning id, base_id, own_id
    )
    insert into variable_heads (org_id, environment, text_id, set_id, has_secrets)
    select ${orgId}, p.environment, p.text_id, coalesce(k.id, c.id), p.has_secrets
    from paired p
    left join kept k on k.base_id = p.base_id and k.own_id = p.own_id
    left join created c on c.base_id = p.base_id and c.own_id = p.own_id
    on conflict (org_id, environment) do update
    set text_id = excluded.text_id, set_id = excluded.set_id, has_secrets = excluded.has_secrets`
  await retireSets(tx, orgId)
}

/** Ids of the text of a level as it is now, and of the one without anything. */
export interface LevelTexts {
  level: string
  empty: string
}

export async function putTexts(tx: Tx, { orgId, environment }: Level): Promise<LevelTexts> {
  const [row] = await tx<[LevelTexts]>`
    with given as materialized (
      -- A secret of an environment is told by its name: it hides a variable of the org.
      select coalesce(json_object_agg(name, value order by name)::text, '{}') as content
      from variables
      where org_id = ${orgId} and environment = ${environment} and (value is not null or environment <> '')
    ),
    put as (
      insert into variable_texts (org_id, digest, bytes, content)
      select ${orgId}, sha256(convert_to(content, 'UTF8')), octet_length(content), content::json
      from (select content from given union select '{}') t
      on conflict (org_id, digest) do update set used_at = now()
      returning id, digest
    )
    select
      (select id from put where digest = (select sha256(convert_to(content, 'UTF8')) from given)) as level,
      (select id from put where digest = sha256('{}')) as empty`
  return row
}

/** Sets that no environment of the org has any more. Runs may have started with them. */
export async function retireSets(tx: Tx, orgId: Level['orgId']): Promise<void> {
  await tx`
    update variable_sets s
    set retired_at = now()
    where s.org_id = ${orgId} and s.retired_at is null
      and not exists (select from variable_heads h where h.org_id = s.org_id and h.set_id = s.id)`
}

/** How much is kept of an org. `old` is what no environment has any more. */
export interface StoredText {
  /** Of the text that was written. */
  bytes: number
  oldBytes: number
  oldSets: number
}

export async function storedOf(tx: Tx, { orgId }: Level, textId: string): Promise<StoredText> {
  const [row] = await tx<[StoredText]>`
    select
      (select bytes from variable_texts where id = ${textId}) as bytes,
      (select count(*)::int from variable_sets where org_id = ${orgId} and retired_at is not null) as old_sets,
      (
        select coalesce(sum(t.bytes), 0)::float8
        from variable_texts t
        where t.org_id = ${orgId} and not exists (select from variable_heads h where h.text_id = t.id offset 0)
      ) as old_bytes`
  return row
}

/** What is set for all of the org, and by the environment itself; null hides what is set for all. */
export interface SetTexts {
  base: string
  own: string
}

export async function textsOf(sql: Sql, id: string): Promise<SetTexts | undefined> {
  const [row] = await sql<SetTexts[]>`
    select base.content::text as base, own.content::text as own
    from variable_sets s
    join variable_texts base on base.id = s.base_id
    join variable_texts own on own.id = s.own_id
    where s.id = ${id}`
  return row
}

/** Runs at which one statement looks, in some 0.2 s: an org may have millions that wait. */
const PORTION_OF_RUNS = 20_000

/** Sets that unfinished runs have. First of those behind the mark, as they come before it and do not go back. */
async function setsInUse(db: Db): Promise<string[]> {
  const young = await db<{ id: string }[]>`
    select distinct variable_set_id as id
    from runs
    where id > (select run_id from sweep_mark) and finished_at is null and variable_set_id > 0`
  const used = new Set(young.map(({ id }) => id))
  for (let after: string | null = ''; after !== null;) {
    const [row]: { last: string | null; ids: string[] }[] = await db`
      with portion as materialized (
        select run_id from runs_remaining where run_id > ${after} order by run_id limit ${PORTION_OF_RUNS}
      )
      select (select max(run_id) from portion) as last,
             array(
               select distinct r.variable_set_id::text
               from portion
               cross join lateral (${runById(db, db`portion.run_id`)}) r
               where r.finished_at is null and r.variable_set_id > 0
             ) as ids`
    after = row!.last
    for (const id of row!.ids) used.add(id)
  }
  return [...used]
}

/** Sets removed in one statement: some tens of milliseconds of it. */
const PORTION = 5000

/**
 * Removes what was retired an hour ago and no unfinished run has. A claim may have read the head just before it was
 * changed; no statement takes an hour. In portions: an org can leave so many that one statement would never end.
 */
export async function removeRetired(db: Db): Promise<number> {
  // None of these sets is given to a run any more, so those that are in use now are all that will be.
  const inUse = await setsInUse(db)
  let removed = 0
  for (let after: string | null = '0'; after !== null;) {
    const [row]: { last: string | null; removed: number }[] = await db`
      with portion as materialized (
        select id
        from variable_sets
        where retired_at < now() - interval '1 hour' and id > ${after}
        order by id
        limit ${PORTION}
      ),
      gone as (
        delete from variable_sets s
        using portion
        where s.id = portion.id and s.id <> all(${inUse}::bigint[])
          and not exists (select from variable_heads h where h.set_id = s.id)
        returning s.id
      )
      select (select max(id) from portion) as last, (select count(*)::int from gone) as removed`
    after = row!.last
    removed += row!.removed
  }
  await removeTexts(db)
  return removed
}

/** Texts removed in one statement; one has some kilobytes, and nearly a megabyte at most. */
const PORTION_OF_TEXTS = 500

/** Their time of use is looked at again where a change is just giving one out. */
async function removeTexts(db: Db): Promise<void> {
  for (let after: string | null = '0'; after !== null;) {
    const [row]: { last: string | null }[] = await db`
      with portion as materialized (
        select id
        from variable_texts
        where used_at < now() - interval '1 hour' and id > ${after}
        order by id
        limit ${PORTION_OF_TEXTS}
      ),
      gone as (
        delete from variable_texts t
        using portion
        where t.id = portion.id and t.used_at < now() - interval '1 hour'
          and not exists (select from variable_sets s where s.base_id = t.id)
          and not exists (select from variable_sets s where s.own_id = t.id)
          and not exists (select from variable_heads h where h.text_id = t.id)
      )
      select (select max(id) from portion) as last`
    after = row!.last
  }
}
