import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Candidate, Pair, QueueHead, Reservation } from './candidate.ts'
import { match } from './match.ts'
import { readNeeds } from './needs.ts'

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
  /** All that may be given work, whether or not they ask for it now, with those of these labels that they carry. */
  workers(labels: readonly string[]): Promise<Candidate[]>
  /** Those of these runs that still wait, and have waited for long, in the order in which the pool gives them out. */
  oldAmong(runIds: readonly RunId[]): Promise<QueueHead[]>
}

/** How far a pool with many lines has been looked through. Over when nothing was found from its begin to its end. */
export interface Round {
  /** The last line that was looked at; those behind it are next. */
  after?: string
  hasGiven: boolean
  /** Runners that are kept, by the run for which they are. Made anew for each line when it has its turn. */
  reservations: ReadonlyMap<RunId, RunnerId>
}

export const NEW_ROUND: Round = { hasGiven: false, reservations: new Map() }

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
  const [heads, reserved] = await Promise.all([waiting.heads({ needs, each }), reservedIn(waiting, round)])
  const next = needs.length === mostLines ? needs.at(-1) : undefined
  const candidates = found.map((one) => ({ ...one, free: free.get(one.runnerId)! }))
  const ask = { heads, candidates, each, most, reserved }
  const first = await match(ask)
  const { pairs, reservations } = first.isStarving
    ? await match({ ...ask, workers: await waiting.workers(starvingFor(heads)) })
    : first
  if (next === undefined) return { pairs, round: { ...NEW_ROUND, reservations } }
  return { pairs, round: { ...round, after: next, reservations } }
}

/** Labels of the runs for which a worker may be kept. */
function starvingFor(heads: readonly QueueHead[]): string[] {
  const needs = new Set(heads.flatMap((head) => (head.isOld ? [head.needs] : [])))
  const lines = [...needs].map(readNeeds).filter(({ slots }) => slots > 1)
  return [...new Set(lines.flatMap(({ labels }) => labels))]
}

/** What its run does not need any more has ended: it was given to a runner, or cancelled. */
async function reservedIn(waiting: Waiting, { reservations }: Round): Promise<Reservation[]> {
  if (reservations.size === 0) return []
  const runs = await waiting.oldAmong([...reservations.keys()])
  return runs.map((run) => ({ run, runnerId: reservations.get(run.runId)! }))
}
