/**
 * Runs of which nobody knows whether they go on: their agent has not been heard of lately, or is back since a moment
 * only, and what it wrote meanwhile is on its way. What a clock decides of such a run, such as that its time is over,
 * waits until the agent was heard, or until its lease is over.
 */
import type { Sql } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'

/** For what an agent sends first when it is back. */
const SETTLING_MS = 3000

/** Of runner `r`. `silentMs`: see `silentMs` in coordinator/runners/settings.ts. */
export const isSilent = (sql: Sql, silentMs: number): Fragment => sql`
  (r.disconnected_at is not null
    or r.last_heartbeat_at < now() - ${silentMs}::float8 * interval '1 millisecond') is true`

/** Of runner `r`, as above. */
export const isInDoubt = (sql: Sql, silentMs: number): Fragment => sql`
  (${isSilent(sql, silentMs)}
    or r.connected_at > now() - ${SETTLING_MS} * interval '1 millisecond') is true`
