/** What comes due, and whether coordinators were away before. */
import { createPulse } from '../../engine/commit/pulse.ts'
import type { TestCoordinator } from './coordinator-types.ts'

/** The end of an outage: leases are given 90 s from now on. */
export const outageEnds = ({ deps }: Pick<TestCoordinator, 'deps'>) => createPulse(deps)()

/** Agents had their time to come back. */
export const isLongAgo = ({ deps }: Pick<TestCoordinator, 'deps'>) =>
  deps.grace.note({ atMs: Date.now(), gapAtMs: 0, graceUntilMs: null })

export function lookNow({ deps }: Pick<TestCoordinator, 'deps'>): void {
  deps.floors.timers.lower(-Infinity)
  deps.timers.expect(0)
}

/** The first one of this kind: when it is due from now on, and from the end of the last outage. */
export async function timerOf(
  { db }: Pick<TestCoordinator, 'db'>,
  run: string,
  kind: string,
): Promise<{ inMs: number; sinceGapMs: number } | undefined> {
  const [row] = await db<{ inMs: number; sinceGapMs: number }[]>`
    select (extract(epoch from t.due_at - now()) * 1000)::float8 as in_ms,
           (extract(epoch from t.due_at - p.gap_at) * 1000)::float8 as since_gap_ms
    from timers t, pulse p
    where t.run_id = ${run} and t.kind = ${kind}
    order by t.n
    limit 1`
  return row
}
