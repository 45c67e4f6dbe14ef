import type { Moving } from './run.ts'
import { requeue, takeBack } from './transitions.ts'

/** By so much more it waits each time, up to as long as what cannot be prepared. */
const STEP_MS = 1000
const MOST_MS = 30_000
/** What is fetched for the run may be what ends its agents, so that there is an end: after four hours at the least. */
const MOST_RETURNS = 500

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
  requeue(run, at, { attempt: run.attempt, reason }, Math.max(restMs, Math.min(MOST_MS, returns * STEP_MS)))
  return true
}
