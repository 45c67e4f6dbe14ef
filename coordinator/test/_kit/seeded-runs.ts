import type { Db } from '../../db/client.ts'
import { sqlId } from './sql-ids.ts'

/** Of how many runs there is one with this. */
export const ONE_IN = {
  queued: 30_000,
  cancelled: 10_000,
  failed: 100,
  rareTag: 10_000,
  tag: 3,
  workflow: 1000,
  hook: 2,
}
/** The webhook that has started one in so many of them. */
export const SEEDED_HOOK = 'hook_00000000000000000000seeded'
/** Over which the runs were triggered, evenly. */
const SPAN_MS = 90 * 86_400_000
const BATCH = 100_000

export interface SeedAsk {
  org: string
  count: number
  /** Slugs: of most runs, and of a few. */
  workflows: { common: string; rare: string }
  /** False: the planner knows nothing of what was written. */
  analyze?: boolean
}

/** Runs of three months that are over, but for the few that enter the queue in a year; the last of them a minute ago. */
export async function seedRuns(db: Db, { org, count, workflows, analyze = true }: SeedAsk): Promise<void> {
  const step = Math.floor(SPAN_MS / count)
  const start = Date.now() - 60_000 - count * step
  const ms = db`(${start}::bigint + i * ${step}::bigint)`
  const at = db`to_timestamp(${ms} / 1000.0)`
  for (let from = 1; from <= count; from += BATCH) {
    await db`
      with targets as (
        select w.id as workflow_id, w.org_id, w.slug, v.id as version_id, p.id as pool_id
        from workflows w
        join workflow_versions v on v.workflow_id = w.id and v.version = w.version
        join runner_pools p on p.org_id = w.org_id and p.name = 'default'
        join orgs o on o.id = w.org_id and o.slug = ${org}
      ),
      made as (
        select i,
               case
                 when i % ${ONE_IN.queued} = 1 then 'queued'
                 when i % ${ONE_IN.cancelled} = 2 then 'cancelled'
                 when i % ${ONE_IN.failed} = 3 then 'failed'
                 else 'completed'
               end as status
        from generate_series(${from}::int, ${Math.min(from + BATCH - 1, count)}::int) as i
      )
      insert into runs (id, org_id, workflow_id, version_id, pool_id, status, epoch, cursor, trigger_kind, trigger_id, trigger_actor, tags,
                        input, output, error, created_at, queued_at, claimed_at, started_at, finished_at, compute_ms)
      select ${sqlId(db, 'run', ms, db`i`)}, t.org_id, t.workflow_id, t.version_id, t.pool_id, m.status, 1, 5,
             case when i % ${ONE_IN.hook} = 1 then 'webhook' else 'api' end,
             case when i % ${ONE_IN.hook} = 1 then ${SEEDED_HOOK} end, 'key_seed',
             case when i % ${ONE_IN.rareTag} = 5 then '{rare,nightly}' when i % ${ONE_IN.tag} = 0 then '{nightly}' else '{}' end::text[],
             '{"customer":' || i || ',"address":{"zip":"10115"}}', case when m.status = 'completed' then '"done"' end,
             case when m.status = 'failed' then '{"code":"PROGRAM_FAILED","message":"it was seeded"}' end,
             ${at}, ${at}, ${at}, ${at}, case when m.status <> 'queued' then ${at} + interval '2 seconds' end, 1900
      from made m
      join targets t on t.slug = case when i % ${ONE_IN.workflow} = 4 then ${workflows.rare} else ${workflows.common} end`
  }
  await db`
    insert into timers (run_id, org_id, kind, due_at)
    select id, org_id, 'enqueue', now() + interval '1 year'
    from runs
    where status = 'queued'
    on conflict do nothing`
  // As the sweeper would have left it by now.
  await db`
    insert into runs_remaining (run_id, org_id, trigger_id, environment, pool_id)
    select id, org_id, coalesce(trigger_id, ''), environment, pool_id
    from runs
    where status = 'queued'
    on conflict do nothing`
  await db`update sweep_mark set run_id = (select max(id) from runs)`
  await db`
    insert into run_tags (org_id, tag, run_id)
    select org_id, unnest(tags), id
    from runs
    order by 1, 2, 3
    on conflict do nothing`
  await db`
    insert into runs_unsuccessful (org_id, run_id, status)
    select org_id, id, status
    from runs
    where status in ('failed', 'cancelled')
    on conflict do nothing`
  if (analyze) await db`vacuum (analyze) runs, run_tags, runs_remaining, runs_unsuccessful`
}
