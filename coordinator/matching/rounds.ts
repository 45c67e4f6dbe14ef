import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Candidate, Pair, QueueHead } from './candidate.ts'
import { match } from './match.ts'

/** The first runs of a line that are looked at in one go, when there are few lines; of many lines fewer each. */
const LOOKED_AT = 512
const LEAST_EACH = 8
/** Lines that are looked at in one go; the others have their turns. What is read and matched holds up all orgs. */
const MOST_LINES = 256

/** What waits in a pool, and who works there. */
export interface Waiting {
  /** The different needs, or those behind `after`, in the order of their texts. */
  lines(of: { after: string | undefined; most: number }): Promise<string[]>
  /** The first runs of these lines, in the order in which the pool gives them out. */
  heads(of: { needs: string[]; each: number }): Promise<QueueHead[]>
  /** Those of these runners that may be given work. */
  candidates(runnerIds: readonly RunnerId[]): Promise<Candidate[]>
  /** All that may be given work, whether or not they ask for it now. */
  workers(): Promise<Candidate[]>
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
export const NEW_ROUND: Round = { hasGiven: false, reservations: NOBODY, reservedBefore: NOBODY }

interface Plan {
  /** Which runs fit which of the runners. */
  pairs: Pair[]
  /** The round after this. */
  round: Round
}

export interface PlanAsk {
  asking: readonly { runnerId: RunnerId; slots: number }[]
  round: Round
  /** Runs given out in one go. */
  most: number
  mostLines?: number
}

/** Looks at the next lines of a round. Nothing is locked: the claim looks again. */
export async function planPiece(
  waiting: Waiting,
  { asking, round, most, mostLines = MOST_LINES }: PlanAsk,
): Promise<Plan> {
  const free = new Map(asking.map(({ runnerId, slots }) => [runnerId, slots]))
  const [needs, found] = await Promise.all([
    waiting.lines({ after: round.after, most: mostLines }),
    waiting.candidates([...free.keys()]),
  ])
  const wanted = found.reduce((sum, { runnerId }) => sum + free.get(runnerId)!, 0)
  const each = Math.max(LEAST_EACH, Math.min(wanted, Math.floor(LOOKED_AT / Math.max(1, needs.length))))
  const heads = await waiting.heads({ needs, each })
  const next = needs.length === mostLines ? needs.at(-1) : undefined
  const isAll = round.after === undefined && next === undefined
  const others = isAll ? new Set() : takenByOthers(round, heads)
  const candidates = found.map((one) => ({ ...one, free: others.has(one.runnerId) ? 0 : free.get(one.runnerId)! }))
  const ask = { heads, candidates, each, most }
  const first = await match(ask)
  const { pairs, reservations } = first.isStarving ? await match({ ...ask, workers: await waiting.workers() }) : first
  return { pairs, round: roundAfter(round, { next, reservations }) }
}

/** Runners that are kept for runs of other lines than those that are looked at. */
function takenByOthers({ reservations, reservedBefore }: Round, heads: readonly QueueHead[]): Set<RunnerId> {
  const here = new Set(heads.map(({ runId }) => runId))
  return new Set(
    [...reservedBefore, ...reservations].flatMap(([runId, runnerId]) => (here.has(runId) ? [] : [runnerId])),
  )
}

function roundAfter(
  round: Round,
  { next, reservations: more }: { next: string | undefined; reservations: Round['reservations'] },
): Round {
  const reservations = more.size === 0 ? round.reservations : new Map([...round.reservations, ...more])
  if (next === undefined) return { ...NEW_ROUND, reservedBefore: reservations }
  return { ...round, after: next, reservations }
}
