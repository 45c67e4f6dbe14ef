import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { groupCommit } from '../db/group-commit.ts'
import { inTime } from '../in-time.ts'

/** Looks up what anybody may invent, such as an id or a token, from however many networks. */
export interface StrangerReads<I, O> {
  /** Throws UNAVAILABLE where it would have to wait for long. */
  add(asked: I): Promise<O>
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
/** Each network has its turn: by then one of 5,000 that ask without end has had it. */
const PATIENCE_MS = 10_000
/** Some 10 MB. An address may have 300 under way. */
const MOST_WAITING = 20_000

/**
 * Whoever asks while a statement is under way shares the next one, each network in its turn: none has a seat that
 * others want.
 */
export function strangerReads<I extends { network: string }, O>(
  options: StrangerReadsOptions<I, O>,
): StrangerReads<I, O> {
  const { name, log, read } = options
  let waiting = 0
  const group = groupCommit<I, O>({
    name,
    log,
    orgOf: ({ network }) => network,
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
  return {
    async add(asked) {
      if (waiting >= MOST_WAITING) throw new Fault('UNAVAILABLE', {}, BUSY)
      waiting++
      const answer = group.add(asked).finally(() => waiting--)
      return inTime(PATIENCE_MS, answer, BUSY)
    },
  }
}

const BUSY = 'Very many ids and tokens that are not known here are being looked up; try again in a few seconds.'
