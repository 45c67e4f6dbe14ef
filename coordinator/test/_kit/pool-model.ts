/** A pool in memory: what waits there, who works there, and how a dispatcher gives one to the other. */
import assert from 'node:assert/strict'
import { newId, type RunId, type RunnerId } from '@windlass/shared/ids.ts'
import type { Candidate, QueueHead } from '../../matching/candidate.ts'
import { needsText, readNeeds } from '../../matching/needs.ts'
import { NEW_ROUND, planPiece, type Round, type Waiting } from '../../matching/rounds.ts'

export interface ModelRun {
  slots: number
  labels: string[]
  priority: number
  isResume: boolean
  isOld: boolean
}

export interface ModelRunner {
  slots: number
  labels: string[]
}

/** How many lines are looked at in one go, and runs given out. */
type Pieces = { mostLines: number; most: number }
type Runner = ModelRunner & { runnerId: RunnerId; isOpen: boolean }
type Executing = { runId: RunId; runnerId: RunnerId; slots: number }

/** More looks than any pool of a test takes until nothing is left to do. */
const MOST_LOOKS = 5000

/** By the definition: the order in which a pool gives its runs out. */
const inOrder = (a: QueueHead, b: QueueHead) =>
  Number(b.isResume) - Number(a.isResume) || b.priority - a.priority || a.position - b.position

const carries = (runner: ModelRunner, labels: readonly string[]) =>
  labels.every((label) => runner.labels.includes(label))

export class PoolModel {
  queue: QueueHead[] = []
  executing: Executing[] = []
  round: Round = NEW_ROUND
  #position = 0
  readonly runners: Runner[]
  readonly #pieces: Pieces

  constructor(runners: readonly ModelRunner[], pieces: Pieces) {
    this.runners = runners.map((one) => ({ ...one, runnerId: newId('rnr'), isOpen: true }))
    this.#pieces = pieces
  }

  enqueue({ slots, labels, ...about }: ModelRun): RunId {
    const runId = newId('run')
    this.queue.push({ runId, needs: needsText({ slots, labels }), position: ++this.#position, ...about })
    return runId
  }

  cancel(runId: RunId): void {
    this.queue = this.queue.filter((one) => one.runId !== runId)
  }

  /** Looks as long as a dispatcher does before it waits for something to happen. Answers who was given to a runner. */
  async look(): Promise<RunId[]> {
    const given: RunId[] = []
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const { pairs, round } = await planPiece(this.#waiting(), {
        ...this.#pieces,
        asking: this.#asking(),
        round: this.round,
      })
      const isMore = pairs.length > 0 || round.after !== undefined || this.round.hasGiven
      const reserved = [...round.reservations.values()]
      assert.equal(new Set(reserved).size, reserved.length, 'one runner is kept for one run')
      this.round = pairs.length > 0 ? { ...round, hasGiven: round.after !== undefined } : round
      for (const pair of pairs) {
        this.cancel(pair.runId)
        this.executing.push(pair)
        given.push(pair.runId)
      }
      if (!isMore) return given
    }
    throw new Error('looks without end')
  }

  /** By the definition: what a pool would do now that looks at all lines at once and remembers nothing. */
  wanted(): { given: RunId[]; reservations: Map<RunId, RunnerId> } {
    const open = this.runners.filter(({ isOpen }) => isOpen).map((one) => ({ ...one, free: this.#freeOf(one) }))
    const [given, reservations, over] = [[] as RunId[], new Map<RunId, RunnerId>(), new Set<string>()]
    for (const { runId, needs, isOld } of this.queue.toSorted(inOrder)) {
      if (over.has(needs)) continue
      const { slots, labels } = readNeeds(needs)
      const reserved = new Set(reservations.values())
      const able = open.filter((one) => carries(one, labels) && one.slots >= slots && !reserved.has(one.runnerId))
      const roomiest = able.sort((a, b) => b.free - a.free || (a.runnerId < b.runnerId ? -1 : 1))[0]
      const fits = roomiest !== undefined && roomiest.free >= slots
      if (fits) {
        roomiest.free -= slots
        given.push(runId)
      } else {
        over.add(needs)
        if (isOld && slots > 1 && roomiest) reservations.set(runId, roomiest.runnerId)
      }
    }
    return { given, reservations }
  }

  #asking() {
    return this.runners.flatMap((one) => {
      const slots = this.#freeOf(one)
      return one.isOpen && slots > 0 ? [{ runnerId: one.runnerId, slots }] : []
    })
  }

  #freeOf({ runnerId, slots }: Runner): number {
    const taken = this.executing.filter((one) => one.runnerId === runnerId)
    return taken.reduce((free, one) => free - one.slots, slots)
  }

  /** Whether one of the runners that are given work could ever execute it. */
  mayFit({ needs }: QueueHead): boolean {
    const { slots, labels } = readNeeds(needs)
    return this.runners.some((one) => one.isOpen && one.slots >= slots && carries(one, labels))
  }

  #waiting(): Waiting {
    const queue = this.queue.toSorted(inOrder)
    const lines = [...new Set(queue.map(({ needs }) => needs))].sort((a, b) => (a < b ? -1 : 1))
    const open = this.runners.filter(({ isOpen }) => isOpen)
    const workers = open.map((one): Candidate => ({ ...one, free: this.#freeOf(one) }))
    const firstOf = (needs: string, each: number) => queue.filter((one) => one.needs === needs).slice(0, each)
    return {
      lines: async ({ after, most }) => lines.filter((one) => after === undefined || one > after).slice(0, most),
      heads: async ({ needs, each }) => needs.flatMap((one) => firstOf(one, each)).sort(inOrder),
      candidates: async (ids) => workers.filter(({ runnerId }) => ids.includes(runnerId)),
      workers: async (asked) =>
        workers.map((one) => ({ ...one, labels: one.labels.filter((label) => asked.includes(label)) })),
      oldAmong: async (ids) => queue.filter(({ runId, isOld }) => isOld && ids.includes(runId)),
    }
  }
}
