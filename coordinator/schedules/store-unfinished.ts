import type { RunId, ScheduleId } from '@windlass/shared/ids.ts'
import { runById } from '../db/by-key.ts'
import type { Db } from '../db/client.ts'
import type { Fragment } from '../db/newest.ts'
import { unnest } from '../db/unnest.ts'

/** Whose unfinished runs are asked for, and how many at the most. */
export interface UnfinishedAsk {
  id: ScheduleId
  most: number
  /** Only those that are older. */
  before?: RunId
}

/**
 * Unfinished runs of these schedules: of each the newest, and of them the oldest first. Behind `sweep_mark`, see
 * 0003-runs.sql, there are few that have finished. Before it a schedule may have thousands of them, so it is asked what
 * remains there.
 */
export async function unfinishedOf(db: Db, schedules: readonly UnfinishedAsk[]): Promise<Map<string, RunId[]>> {
  return bySchedule(schedules, await rowsOf(db, schedules, db`false`))
}

/**
 * The same, with those of which nobody knows whether they have ended. In one look: a run that ends between two would be
 * unfinished in the first, and in no doubt in the second.
 */
export async function unfinishedAndInDoubt(
  db: Db,
  schedules: readonly UnfinishedAsk[],
  isInDoubt: (runId: Fragment) => Fragment,
): Promise<{ unfinished: Map<string, RunId[]>; inDoubt: Set<RunId> }> {
  const rows = await rowsOf(db, schedules, isInDoubt(db`found.id`))
  const inDoubt = new Set(rows.flatMap((row) => (row.isInDoubt ? [row.id] : [])))
  return { unfinished: bySchedule(schedules, rows), inDoubt }
}

interface Unfinished {
  scheduleId: string
  id: RunId
  isInDoubt: boolean
}

function rowsOf(db: Db, schedules: readonly UnfinishedAsk[], isInDoubt: Fragment): PromiseLike<Unfinished[]> {
  if (schedules.length === 0) return Promise.resolve([])
  return db<Unfinished[]>`
    with asked as (
      select id, most, before
      from ${unnest(db, 't', schedules, { id: 'text', most: 'int', before: ['text', ({ before = '~' }) => before] })}
    ),
    young as (
      select r.trigger_id, r.id, r.status
      from asked a
      cross join lateral (
        select r.trigger_id, r.id, r.status
        from runs r
        where (r.trigger_id, r.id) > (a.id, (select run_id from sweep_mark)) and (r.trigger_id, r.id) < (a.id, a.before)
          and r.trigger_kind in ('schedule', 'webhook', 'connection') and r.finished_at is null
        order by r.trigger_id desc, r.id desc
        limit a.most
      ) r
    ),
    remaining as (
      select m.trigger_id, m.id, m.status
      from asked a
      cross join lateral (
        select m.trigger_id, r.id, r.status
        from runs_remaining m
        cross join lateral (${runById(db, db`m.run_id`)}) r
        where (m.trigger_id, m.run_id) > (a.id, '') and (m.trigger_id, m.run_id) < (a.id, a.before)
          and r.finished_at is null
        order by m.trigger_id desc, m.run_id desc
        limit a.most
      ) m
    )
    -- What is being cancelled ends as that, whatever it has come to.
    select trigger_id as schedule_id, id, status <> 'cancelling' and ${isInDoubt} as is_in_doubt
    from (select * from young union select * from remaining) found
    order by id`
}

function bySchedule(schedules: readonly UnfinishedAsk[], rows: readonly Unfinished[]): Map<string, RunId[]> {
  const found = new Map<string, RunId[]>()
  for (const { scheduleId, id } of rows) {
    const known = found.get(scheduleId)
    if (known) known.push(id)
    else found.set(scheduleId, [id])
  }
  for (const { id, most } of schedules) if (found.has(id)) found.set(id, found.get(id)!.slice(-most))
  return found
}
