import type { Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'
import type { Backlog } from './backlog.ts'
import type { Grace } from './grace.ts'
import { isInDoubt } from '../store/doubt.ts'

/** For who reads runs: nobody knows whether this one goes on. */
export const isRunInDoubt = (sql: Sql, runId: Fragment, silentMs: number): Fragment => sql`
  exists (
    select
    from placements p
    join runners r on r.id = p.runner_id
    where p.run_id = ${runId} and p.accepted_at is not null and ${isInDoubt(sql, silentMs)}
    offset 0
  )`

/** The same of a runner, in the row `r`. */
export const isRunnerInDoubt = isInDoubt

/**
 * After so long a silence an agent is in doubt. After an outage nothing counts that was heard before its end; and
 * nothing at all while the database has yet to take what agents had told by then.
 */
export function doubtfulAfterMs({ grace, silentMs, backlog }: DoubtDeps): number {
  return backlog.isThere() ? 0 : Math.min(silentMs(), grace.now()?.sinceMs ?? Infinity)
}

export interface DoubtDeps {
  grace: Pick<Grace, 'now'>
  backlog: Pick<Backlog, 'isThere'>
  /** After so long an agent of which nothing has come is late. */
  silentMs: () => number
}
