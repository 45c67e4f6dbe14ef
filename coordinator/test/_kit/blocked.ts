import type { Db } from '../../db/client.ts'
import { untilPolled } from './until.ts'

/** How many sessions of this database wait for a lock, with a statement like this. Other databases have tests too. */
export async function countBlocked(db: Db, like = '%'): Promise<number> {
  const [row] = await db<[{ count: number }]>`
    select count(*)::int as count
    from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${like}`
  return row.count
}

/** Takes the pool: a transaction sees the sessions that there were when it first looked. */
export const untilBlocked = (db: Db, like?: string) =>
  untilPolled('a session to wait for a lock', async () => (await countBlocked(db, like)) > 0)
