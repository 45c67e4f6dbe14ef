import type { Moving } from './run.ts'
import { requeue, takeBack } from './transitions.ts'

/** By so much more it waits each time. */
const STEP_MS = 1000
/**
 * What is fetched for the run may be what ends its agents, and what else they execute goes with them: so there is an
 * end, after three minutes at the least. Whoever restarts an agent seldom does it so often.
 */
const MOST_RETURNS = 20

/**
 * Its agent was killed before it could begin: the run goes back and uses no attempt. Returns false where that counts
 * like any loss: of a replay, which uses no attempt anyway and has delays of its own, or after too many of these.
 */
export function takeUnbegun(
  run: Moving,
  at: number,
  reason: string,
  { restMs, isOffered }: { restMs: number; isOffered: boolean },
): boolean {
  run.isUnbegun = isOffered && takeBack(run, at, reason, restMs)
  if (run.isUnbegun) return true
  if (run.status !== 'pending') return false
  const returns = run.cutReplays++
  if (returns >= MOST_RETURNS) return false
  requeue(run, at, { attempt: run.attempt, reason }, Math.max(restMs, returns * STEP_MS))
  return true
}
