import type { Db } from '../../db/client.ts'

export interface UnderWay {
  slug: string
  n: number
  /** Those among them that have no slot. */
  uncounted: number
}

/**
 * Of limited workflows: the runs that a process has, or that a claim may give to one. A row in the queue is not enough
 * for that. When a run is cancelled whose row a claim holds, the row goes with the claim, which finds the run changed;
 * its place goes to the next one at once. For that time there are more rows than the limit allows.
 */
export const underWay = (db: Db): PromiseLike<UnderWay[]> => db<UnderWay[]>`
  select w.slug, count(*)::int as n,
         (count(*) filter (where not exists (select from concurrency_slots s where s.run_id = r.id)))::int as uncounted
  from runs r
  join workflows w on w.id = r.workflow_id
  where r.concurrency_group is not null
    and (r.status in ('pending', 'running')
         or r.status = 'queued' and exists (select from run_queue q where q.run_id = r.id))
  group by w.slug`
