import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
import { createSlices, mapInSlices } from '../slices.ts'
import { type Candidate, goesBefore, type Pair, type QueueHead, type Reservation } from './candidate.ts'
import { type Bits, indexesOf, readCarriers } from './carriers.ts'
import { readNeeds } from './needs.ts'

/** A runner as its slots are given away. */
interface OpenCandidate {
  runnerId: RunnerId
  /** How many it carries. */
  labels: number
  free: number
  given: number
}

/** Runs with the same needs. */
interface Line {
  slots: number
  labels: string[]
  /** Candidates that carry its labels; undefined until its first run has its turn. */
  fitting: Bits | undefined
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
  /** Of looks before this one, in the order of their runs. Those of the lines that are looked at are made anew. */
  reserved?: readonly Reservation[]
  /** Where a runner is to be kept for a run that has waited for long: whoever could be that. */
  workers?: readonly Candidate[]
}

export interface Match {
  pairs: Pair[]
  /** A run that has waited for long fits nowhere; a runner has to be kept for it. */
  isStarving: boolean
  /** Runners that are kept, by the run for which they are. */
  reservations: ReadonlyMap<RunId, RunnerId>
}

/**
 * Who gets what: the runs in their order, each to a runner with its labels and room for it. What fits nowhere is passed over; but a
 * run that has waited for long keeps the runner on which most is free already, and what comes after it gets nothing there. So the
 * room for it only grows. Others have their turns in between.
 *
 * Runs of other lines keep theirs in the same order. One runner is kept for one run: of two that want it, the first has
 * it, and the other chooses again when its line has its turn. Two that kept it from each other would leave it idle for
 * ever.
 */
export async function match(ask: MatchAsk): Promise<Match> {
  const { heads, candidates: asking, each, most, reserved = [], workers = [] } = ask
  const lines = linesOf(heads, each)
  const asked = new Set([...lines.values()].flatMap(({ labels }) => labels))
  const carrying = await readCarriers(asking, asked)
  const working = await readCarriers(workers, asked)
  const candidates = await mapInSlices(asking, openCandidate)
  const endOfSlice = createSlices()
  const keeper = createKeeper(candidates)
  const elsewhere = reserved.filter(({ run }) => !lines.has(run.needs))
  const pairs: Pair[] = []
  let isStarving = false
  let last: QueueHead | undefined
  let passed = 0
  for (const head of heads) {
    const line = lines.get(head.needs)!
    if (line.isOver) continue
    await endOfSlice()
    while (passed < elsewhere.length && goesBefore(elsewhere[passed]!.run, head)) keeper.keep(elsewhere[passed++]!)
    line.fitting ??= carrying(line.labels)
    const candidate = roomiest(candidates, line.fitting, line.slots)
    if (candidate) {
      pairs.push(give(head, line, candidate))
      // What comes next in a line that was cut off may go before what is known of the others.
      if (pairs.length === most || (line.left === 0 && line.isCut)) {
        last = head
        break
      }
    } else {
      line.isOver = true
      if (!head.isOld || line.slots === 1) continue
      isStarving = true
      const runnerId = workerFor(workers, working(line.labels), line.slots, keeper.runners)
      if (runnerId) keeper.keep({ run: head, runnerId })
    }
  }
  for (const one of reserved) if (isUnseen(one, lines, last)) keeper.keep(one)
  return { pairs, isStarving, reservations: keeper.reservations }
}

/** Whether the look has not come to the run: its line is another, or the look ended with `last`, before it. */
function isUnseen({ run }: Reservation, lines: ReadonlyMap<string, Line>, last: QueueHead | undefined): boolean {
  const line = lines.get(run.needs)
  return line === undefined || (last !== undefined && !line.isOver && goesBefore(last, run))
}

interface Keeper {
  runners: ReadonlySet<RunnerId>
  reservations: ReadonlyMap<RunId, RunnerId>
  /** Unless it is kept for a run before this one. */
  keep(reservation: Reservation): void
}

function createKeeper(candidates: readonly OpenCandidate[]): Keeper {
  const byRunner = new Map(candidates.map((one) => [one.runnerId, one]))
  const runners = new Set<RunnerId>()
  const reservations = new Map<RunId, RunnerId>()
  function keep({ run, runnerId }: Reservation): void {
    if (runners.has(runnerId)) return
    runners.add(runnerId)
    reservations.set(run.runId, runnerId)
    const candidate = byRunner.get(runnerId)
    if (candidate) candidate.free = 0
  }
  return { runners, reservations, keep }
}

function openCandidate({ runnerId, labels, free }: Omit<Candidate, 'slots'>): OpenCandidate {
  return { runnerId, labels: new Set(labels).size, free, given: 0 }
}

function give({ runId }: QueueHead, line: Line, candidate: OpenCandidate): Pair {
  const { runnerId } = candidate
  const { slots } = line
  candidate.free -= slots
  candidate.given += slots
  line.left--
  return { runId, runnerId, slots }
}

function linesOf(heads: readonly QueueHead[], each: number): Map<string, Line> {
  const lines = new Map<string, Line>()
  for (const { needs } of heads) {
    const line = lines.get(needs) ?? { ...readNeeds(needs), fitting: undefined, left: 0, isCut: false, isOver: false }
    line.left++
    line.isCut = line.left >= each
    lines.set(needs, line)
  }
  return lines
}

/** Few runs are spread over many runners; and what needs no label leaves those with many of them to others. */
function roomiest(candidates: readonly OpenCandidate[], fitting: Bits, slots: number): OpenCandidate | undefined {
  let best: OpenCandidate | undefined
  for (const index of indexesOf(fitting)) {
    const one = candidates[index]!
    if (one.free >= slots && (!best || isBetter(one, best))) best = one
  }
  return best
}

function isBetter(a: OpenCandidate, b: OpenCandidate): boolean {
  return (a.given - b.given || a.labels - b.labels || b.free - a.free) < 0
}

/** Which worker to keep: of those with so many slots in all, where most is free. */
function workerFor(
  workers: readonly Candidate[],
  fitting: Bits,
  slots: number,
  reserved: ReadonlySet<RunnerId>,
): RunnerId | undefined {
  let best: Candidate | undefined
  for (const index of indexesOf(fitting)) {
    const one = workers[index]!
    if (one.slots < slots || reserved.has(one.runnerId)) continue
    if (!best || one.free > best.free || (one.free === best.free && one.runnerId < best.runnerId)) best = one
  }
  return best?.runnerId
}
