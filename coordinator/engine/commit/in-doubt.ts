import type { Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'
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
