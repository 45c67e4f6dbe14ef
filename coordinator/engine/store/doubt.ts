/**
 * Runs of which nobody knows whether they go on: their agent has not been heard of lately, or is back since a moment
 * only, and what it wrote meanwhile is on its way. What a clock decides of such a run, such as that its time is over,
 * waits until the agent was heard, or until its lease is over.
 */
import type { RunId } from '@windlass/shared/ids.ts'
import type { Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'

/** For what an agent sends first when it is back. */
const SETTLING_MS = 3000

/** Of runner `r`. `silentMs`: see `silentMs` in coordinator/runners/settings.ts. */
export const isSilent = (sql: Sql, silentMs: number): Fragment => sql`
  (r.last_heartbeat_at < now() - ${silentMs}::float8 * interval '1 millisecond') is true`

/** Of runner `r`, as above. */
export const isInDoubt = (sql: Sql, silentMs: number): Fragment => sql`
  (${isSilent(sql, silentMs)}
    or r.connected_at > now() - ${SETTLING_MS} * interval '1 millisecond') is true`

/** Those of the runs that an agent has, and that are in doubt. */
export async function doubtful(sql: Sql, runIds: readonly RunId[], silentMs: number): Promise<Set<RunId>> {
  if (runIds.length === 0) return new Set()
  const rows = await sql<{ runId: RunId }[]>`
    select p.run_id
    from placements p
    join runners r on r.id = p.runner_id
    where p.run_id = any(${[...runIds]}) and p.accepted_at is not null and ${isInDoubt(sql, silentMs)}`
  return new Set(rows.map(({ runId }) => runId))
}
