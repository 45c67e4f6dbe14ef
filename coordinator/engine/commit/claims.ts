import type { PoolId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { NEW_ROUND, planPiece, type Round, type Waiting } from '../../matching/rounds.ts'
import * as claims from '../store/claim.ts'
import * as waiting from '../store/queue-heads.ts'

/** Runs given out in one statement. */
export const MOST_CLAIMED = 256
/** A run that needs more than is ever free at once has a runner kept for it, once it has waited for so long. */
const OLD_MS = 30_000
/** Others may have been faster. */
const TRIES = 3
/** After a plan that took longer the pool rests as long, so that it has half of the time at most. */
const LONG_MS = 50

export interface ClaimAsk {
  candidates: claims.ClaimCandidate[]
  /** A runner has so long to accept what it is given. */
  offerMs: number
  /** Position at which it begins, see `QueueFloors`. */
  floor?: number
  /** As the claim before answered it. */
  round?: Round | undefined
}

export interface ClaimAnswer {
  claimed: claims.Claimed[]
  /** It is worth looking again at once. */
  isMore: boolean
  /** So long nobody should look for more. */
  restMs?: number
  round?: Round
}

/**
 * Gives the next runs of a pool out, one to each share of a candidate; where labels or slots are asked for, to those
 * who have them.
 */
export async function commitClaims(
  db: Db,
  poolId: PoolId,
  { candidates, offerMs, floor = 0, round = NEW_ROUND }: ClaimAsk,
): Promise<ClaimAnswer> {
  const most = Math.min(
    MOST_CLAIMED,
    candidates.reduce((sum, { share }) => sum + share, 0),
  )
  const plain = await claims.claimPlain(db, poolId, { candidates, most, floor }, offerMs)
  const { claimed, isMixed, isMissed, isCut } = plain
  if (!isMixed) return { claimed, isMore: isMissed || isCut || claimed.length === most }
  let restMs = 0
  let next: Round | undefined
  for (let i = 0; i < TRIES; i++) {
    const since = performance.now()
    const plan = await planPiece(waitingIn(db, poolId, floor), { asking: candidates, round, most: MOST_CLAIMED })
    const tookMs = performance.now() - since
    if (tookMs > LONG_MS) restMs += tookMs
    next = plan.round
    if (plan.pairs.length === 0) break
    const given = await claims.claimPairs(db, poolId, plan.pairs, offerMs)
    if (given.length === 0) continue
    const hasGiven = next.after !== undefined
    return { claimed: given, isMore: true, restMs, round: { ...next, hasGiven } }
  }
  const isOver = next?.after === undefined
  return { claimed: [], isMore: !isOver || round.hasGiven, restMs, round: next ?? round }
}

const waitingIn = (db: Db, poolId: PoolId, floor: number): Waiting => ({
  lines: (of) => waiting.lines(db, poolId, { ...of, floor }),
  heads: (of) => waiting.queueHeads(db, poolId, { ...of, oldMs: OLD_MS, floor }),
  candidates: (runnerIds) => waiting.candidates(db, poolId, runnerIds),
  workers: (labels) => waiting.workers(db, poolId, labels),
  oldAmong: (runIds) => waiting.oldAmong(db, poolId, { runIds, oldMs: OLD_MS }),
})
