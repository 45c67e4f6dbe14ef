import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { groupCommit, type GroupCommit } from '../db/group-commit.ts'
import { inTime } from '../in-time.ts'
import { createNetworkTurns } from './network-turns.ts'

/** Looks up what anybody may invent, such as an id or a token, from however many networks. */
export interface StrangerReads<I, O> {
  /** Throws UNAVAILABLE where it would have to wait for long, and where `gone` fires before its turn has come. */
  add(asked: I, gone?: AbortSignal): Promise<O>
}

interface StrangerReadsOptions<I, O> {
  name: string
  log: Log
  /** Answers in the order of what is asked for. */
  read(this: void, asked: readonly I[]): Promise<O[]>
}

/** Of one statement. */
const MOST = 20
/**
 * So long takes each at least, so that there are 500 in a second at most: at 1,400 in a second, from 1,000 networks,
 * they took all of a processor. A statement takes two milliseconds or three, so that nobody rests for one or two.
 */
const MS_EACH = 2
/** By then one of 5,000 wide networks that ask without end has had its turn. */
const PATIENCE_MS = 10_000
/** No more have their turn in that time. Whoever comes then takes the place of one whose network has more. */
const MOST_WAITING = 5000

interface Waiting<I, O> {
  asked: I
  resolve: (found: O) => void
  reject: (error: unknown) => void
}

/**
 * Whoever asks while a statement is under way shares the next one, each network in its turn: none has a seat that
 * others want. Whoever was answered or has hung up waits no more: where they did, 8,000 requests that hung up, and 500
 * in a second after them, kept everybody else from registering.
 */
export function strangerReads<I extends { network: string }, O>(
  options: StrangerReadsOptions<I, O>,
): StrangerReads<I, O> {
  const waiting = createNetworkTurns<Waiting<I, O>>()
  const group = groupOf(options)
  let isReading = false

  async function readAll() {
    isReading = true
    // What else arrives in this turn of the event loop goes along.
    await setImmediate()
    for (let some = waiting.take(MOST); some.length > 0; some = waiting.take(MOST))
      await Promise.all(some.map(({ asked, resolve, reject }) => group.add(asked).then(resolve, reject)))
    isReading = false
  }

  function enter(one: Waiting<I, O>): void {
    const { network } = one.asked
    if (waiting.size >= MOST_WAITING) {
      const other = waiting.takeFor(network)
      if (!other) throw busy()
      other.reject(busy())
    }
    waiting.add(network, one)
    if (!isReading) void readAll()
  }

  return {
    async add(asked, gone) {
      // It hung up before it came here.
      if (gone?.aborted) throw busy()
      const { promise, resolve, reject } = Promise.withResolvers<O>()
      const one = { asked, resolve, reject }
      const leave = () => waiting.remove(asked.network, one) && reject(busy())
      enter(one)
      gone?.addEventListener('abort', leave)
      try {
        return await inTime(PATIENCE_MS, promise, BUSY)
      } finally {
        gone?.removeEventListener('abort', leave)
        leave()
      }
    },
  }
}

/** Looks up in one statement what it is given at once; one that cannot be looked up fails alone. */
function groupOf<I, O>({ name, log, read }: StrangerReadsOptions<I, O>): GroupCommit<I, O> {
  return groupCommit<I, O>({
    name,
    log,
    // A caller that only reads is told at once that the database is away.
    patienceMs: 0,
    max: MOST,
    async commit(asked) {
      const since = performance.now()
      const found = await read(asked)
      const restMs = MS_EACH * asked.length - (performance.now() - since)
      if (restMs >= 1) await pause(restMs)
      return found
    },
  })
}

const BUSY = 'Very many ids and tokens that are not known here are being looked up; try again in a few seconds.'

const busy = () => new Fault('UNAVAILABLE', {}, BUSY)
