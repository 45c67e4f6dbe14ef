import type { PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import type { Pair, QueueHead } from '../../matching/candidate.ts'
import { match } from '../../matching/match.ts'
import * as claims from '../store/claim.ts'
import * as waiting from '../store/queue-heads.ts'

/** Runs given out in one statement. */
export const MOST_CLAIMED = 256
/** The first runs of a line that are looked at in one go, when there are few lines; of many lines fewer each. */
const LOOKED_AT = 512
const LEAST_EACH = 8
/** Lines that are looked at in one go; the others have their turns. What is read and matched holds up all orgs. */
const MOST_LINES = 256
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

/** How far a pool with many lines has been looked through. Over when nothing was found from its begin to its end. */
export interface Round {
  /** The last line that was looked at; those behind it are next. */
  after?: string
  hasGiven: boolean
  /** Runners that are kept for runs of lines looked at in this round, and in the one before. */
  reservations: ReadonlyMap<RunId, RunnerId>
  reservedBefore: ReadonlyMap<RunId, RunnerId>
}

const NOBODY: ReadonlyMap<RunId, RunnerId> = new Map()
const NEW_ROUND: Round = { hasGiven: false, reservations: NOBODY, reservedBefore: NOBODY }

/**
 * Gives the next runs of a pool out, one to each share of a candidate; where labels or slots are asked for, to those
 * who have them.
 */
export async function commitClaims(
  db: Db,
  poolId: PoolId,
  { candidates, offerMs, round = NEW_ROUND }: ClaimAsk,
): Promise<ClaimAnswer> {
  const most = Math.min(
    MOST_CLAIMED,
    candidates.reduce((sum, { share }) => sum + share, 0),
  )
  const { claimed, isMixed, isMissed, isCut } = await claims.claimPlain(db, poolId, { candidates, most }, offerMs)
  if (!isMixed) return { claimed, isMore: isMissed || isCut || claimed.length === most }
  let restMs = 0
  let next: Round | undefined
  for (let i = 0; i < TRIES; i++) {
    const since = performance.now()
    const plan = await planClaims(db, poolId, candidates, round)
    const tookMs = performance.now() - since
    if (tookMs > LONG_MS) restMs += tookMs
    next = roundAfter(round, plan)
    if (plan.pairs.length === 0) break
    const given = await claims.claimPairs(db, poolId, plan.pairs, offerMs)
    if (given.length === 0) continue
    const hasGiven = next.after !== undefined
    return { claimed: given, isMore: true, restMs, round: { ...next, hasGiven } }
  }
  const isOver = next?.after === undefined
  return { claimed: [], isMore: !isOver || round.hasGiven, restMs, round: next ?? round }
}

function roundAfter(round: Round, { next, reservations: more }: Plan): Round {
  const reservations = more.size === 0 ? round.reservations : new Map([...round.reservations, ...more])
  if (next === undefined) return { ...NEW_ROUND, reservedBefore: reservations }
  return { ...round, after: next, reservations }
}

interface Plan {
  /** Which runs fit which of the runners. */
  pairs: Pair[]
  /** The last of the lines, where there may be more. */
  next: string | undefined
  reservations: ReadonlyMap<RunId, RunnerId>
}

/** Looks at the next lines of a round. Nothing is locked: the claim looks again. */
async function planClaims(
  db: Db,
  poolId: PoolId,
  asking: readonly claims.ClaimCandidate[],
  round: Round,
): Promise<Plan> {
  const free = new Map(asking.map(({ runnerId, slots }) => [runnerId, slots]))
  const [needs, found] = await Promise.all([
    waiting.lines(db, poolId, { after: round.after, most: MOST_LINES }),
    waiting.candidates(db, poolId, [...free.keys()]),
  ])
  const most = found.reduce((sum, { runnerId }) => sum + free.get(runnerId)!, 0)
  const each = Math.max(LEAST_EACH, Math.min(most, Math.floor(LOOKED_AT / Math.max(1, needs.length))))
  const heads = await waiting.queueHeads(db, poolId, { needs, each, oldMs: OLD_MS })
  const next = needs.length === MOST_LINES ? needs.at(-1) : undefined
  const isAll = round.after === undefined && next === undefined
  const others = isAll ? new Set() : takenByOthers(round, heads)
  const candidates = found.map((one) => ({ ...one, free: others.has(one.runnerId) ? 0 : free.get(one.runnerId)! }))
  const ask = { heads, candidates, each, most: MOST_CLAIMED }
  const plan = await match(ask)
  if (!plan.isStarving) return { ...plan, next }
  return { ...(await match({ ...ask, workers: await waiting.workers(db, poolId) })), next }
}

/** Runners that are kept for runs of other lines than those that are looked at. */
function takenByOthers({ reservations, reservedBefore }: Round, heads: readonly QueueHead[]): Set<RunnerId> {
  const here = new Set(heads.map(({ runId }) => runId))
  return new Set(
    [...reservedBefore, ...reservations].flatMap(([runId, runnerId]) => (here.has(runId) ? [] : [runnerId])),
  )
}
