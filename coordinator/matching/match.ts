import type { RunnerId } from '@windlass/shared/ids.ts'
import { readNeeds } from './needs.ts'
import type { Candidate, Pair, QueueHead } from './candidate.ts'

/** A runner as its slots are given away. */
interface OpenCandidate {
  runnerId: RunnerId
  labels: ReadonlySet<string>
  free: number
  given: number
}

/** Runs with the same needs. */
interface Line {
  slots: number
  labels: string[]
  /** That carry its labels. */
  candidates: OpenCandidate[]
  /** How many of its runs are known, and whether there may be more. */
  left: number
  isCut: boolean
  /** One of them did not fit; as slots only become fewer, none does. */
  isOver: boolean
}

export interface MatchAsk {
  /** In the order in which the pool gives them out. */
  heads: readonly QueueHead[]
  /** Runners that ask for work, with what they have free. */
  candidates: readonly Omit<Candidate, 'slots'>[]
  /** So many runs of each line were looked up. */
  each: number
  most: number
  /** Where a runner is to be kept for a run that has waited for long: whoever could be that. */
  workers?: readonly Candidate[]
}

export interface Match {
  pairs: Pair[]
  /** A run that has waited for long fits nowhere; a runner has to be kept for it. */
  isStarving: boolean
}

/**
 * Who gets what: the runs in their order, each to a runner with its labels and room for it. What fits nowhere is passed over; but a
 * run that has waited for long keeps the runner on which most is free already, and what comes after it gets nothing there. So the
 * room for it only grows.
 */
export function match({ heads, candidates: asking, each, most, workers }: MatchAsk): Match {
  const candidates = asking.map(({ runnerId, labels, free }) => ({ runnerId, labels: new Set(labels), free, given: 0 }))
  const lines = linesOf(heads, candidates, each)
  const reserved = new Set<RunnerId>()
  const pairs: Pair[] = []
  let isStarving = false
  for (const head of heads) {
    const line = lines.get(head.needs)!
    const candidate = line.isOver ? undefined : roomiest(line)
    if (candidate) {
      pairs.push(give(head, line, candidate))
      // What comes next in a line that was cut off may go before what is known of the others.
      if (pairs.length === most || (line.left === 0 && line.isCut)) break
    } else if (!line.isOver) {
      line.isOver = true
      if (!head.isOld || line.slots === 1) continue
      isStarving = true
      keepFor(line, { candidates, workers: workers ?? [], reserved })
    }
  }
  return { pairs, isStarving }
}

function give({ runId }: QueueHead, line: Line, candidate: OpenCandidate): Pair {
  const { runnerId } = candidate
  const { slots } = line
  candidate.free -= slots
  candidate.given += slots
  line.left--
  return { runId, runnerId, slots }
}

function linesOf(heads: readonly QueueHead[], candidates: OpenCandidate[], each: number): Map<string, Line> {
  const lines = new Map<string, Line>()
  for (const [text, runs] of Map.groupBy(heads, (head) => head.needs)) {
    const { slots, labels } = readNeeds(text)
    const fitting = candidates.filter((candidate) => labels.every((label) => candidate.labels.has(label)))
    lines.set(text, {
      slots,
      labels,
      candidates: fitting,
      left: runs.length,
      isCut: runs.length >= each,
      isOver: false,
    })
  }
  return lines
}

/** Few runs are spread over many runners; and what needs no label leaves those with many of them to others. */
function roomiest({ candidates, slots }: Line): OpenCandidate | undefined {
  let best: OpenCandidate | undefined
  for (const one of candidates) if (one.free >= slots && (!best || isBetter(one, best))) best = one
  return best
}

function isBetter(a: OpenCandidate, b: OpenCandidate): boolean {
  return (a.given - b.given || a.labels.size - b.labels.size || b.free - a.free) < 0
}

type Keeping = { candidates: OpenCandidate[]; workers: readonly Candidate[]; reserved: Set<RunnerId> }

function keepFor(line: Line, { candidates, workers, reserved }: Keeping): void {
  const able = workers.filter(
    ({ runnerId, slots, labels }) =>
      slots >= line.slots && !reserved.has(runnerId) && line.labels.every((label) => labels.includes(label)),
  )
  const [best] = able.toSorted((a, b) => b.free - a.free || (a.runnerId < b.runnerId ? -1 : 1))
  if (!best) return
  reserved.add(best.runnerId)
  for (const one of candidates) if (one.runnerId === best.runnerId) one.free = 0
}
