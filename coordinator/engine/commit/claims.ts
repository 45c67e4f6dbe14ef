import type { PoolId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import type { Pair } from '../../matching/candidate.ts'
import { type Match, match, type MatchAsk } from '../../matching/match.ts'
import * as claims from '../store/claim.ts'
import * as waiting from '../store/queue-heads.ts'

/** Runs given out in one statement. */
export const MOST_CLAIMED = 256
/** The first runs of a line that are looked at in one go, when there are few lines; of many lines fewer each. */
const LOOKED_AT = 512
const LEAST_EACH = 8
/** A run that needs more than is ever free at once has a runner kept for it, once it has waited for so long. */
const OLD_MS = 30_000
/** Others may have been faster. */
const TRIES = 3
/** After matching that took longer the pool rests as long, so that it has half of the time at most. */
const LONG_MS = 50

export interface ClaimAnswer {
  claimed: claims.Claimed[]
  /** It is worth looking again at once. */
  isMore: boolean
  /** So long nobody should look for more. */
  restMs?: number
}

/**
 * Gives the next runs of a pool out, one to each share of a candidate; where labels or slots are asked for, to those
 * who have them.
 */
export async function commitClaims(
  db: Db,
  poolId: PoolId,
  candidates: claims.ClaimCandidate[],
  offerMs: number,
): Promise<ClaimAnswer> {
  const most = Math.min(
    MOST_CLAIMED,
    candidates.reduce((sum, { share }) => sum + share, 0),
  )
  const { claimed, isMixed, isMissed, isCut } = await claims.claimPlain(db, poolId, { candidates, most }, offerMs)
  if (!isMixed) return { claimed, isMore: isMissed || isCut || claimed.length === most }
  let restMs = 0
  for (let i = 0; i < TRIES; i++) {
    const { pairs, tookMs } = await planClaims(db, poolId, candidates)
    if (tookMs > LONG_MS) restMs += tookMs
    if (pairs.length === 0) break
    const given = await claims.claimPairs(db, poolId, pairs, offerMs)
    if (given.length > 0) return { claimed: given, isMore: true, restMs }
  }
  return { claimed: [], isMore: false, restMs }
}

/** Which runs fit which of these runners, and how long matching took. Nothing is locked: the claim looks again. */
async function planClaims(
  db: Db,
  poolId: PoolId,
  asking: readonly claims.ClaimCandidate[],
): Promise<{ pairs: Pair[]; tookMs: number }> {
  const free = new Map(asking.map(({ runnerId, slots }) => [runnerId, slots]))
  const [needs, found] = await Promise.all([
    waiting.lines(db, poolId),
    waiting.candidates(db, poolId, [...free.keys()]),
  ])
  const candidates = found.map((one) => ({ ...one, free: free.get(one.runnerId)! }))
  const most = candidates.reduce((sum, one) => sum + one.free, 0)
  const each = Math.max(LEAST_EACH, Math.min(most, Math.floor(LOOKED_AT / Math.max(1, needs.length))))
  const heads = await waiting.queueHeads(db, poolId, { needs, each, oldMs: OLD_MS })
  const ask = { heads, candidates, each, most: MOST_CLAIMED }
  const plan = await timedMatch(ask)
  if (!plan.isStarving) return plan
  const keeping = await timedMatch({ ...ask, workers: await waiting.workers(db, poolId) })
  return { pairs: keeping.pairs, tookMs: plan.tookMs + keeping.tookMs }
}

async function timedMatch(ask: MatchAsk): Promise<Match & { tookMs: number }> {
  const since = performance.now()
  return { ...(await match(ask)), tookMs: performance.now() - since }
}
