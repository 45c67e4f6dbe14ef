import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import { inTime } from '../in-time.ts'
import type { Asking } from './asking.ts'

/** What an answer may have much of. */
interface Content {
  text?: string
  /** Bytes as base64. */
  blob?: string
}

/** An act is told how many milliseconds it has: after that its answer is no longer waited for. */
export type Act<T> = (leftMs: number) => Promise<T>

/** The messages of one request: however many there are, they take no more at a time than one would. */
export interface Batch {
  /**
   * Acts when what came before has ended, and others have had their turn. What nobody waits for any more is not begun.
   */
  inTurn<T>(act: Act<T>): Promise<T>
  /** Acts at once. */
  beside<T>(act: Act<T>): Promise<T>
  /** Gives what the answer, which is printed as a whole, has room for. */
  withRoom<T extends Content>(read: () => Promise<T>): Promise<T>
}

/** Characters of all resources and lists of tools in one answer: some 20 ms to print, whatever they are. */
const MOST_CHARS = 1_000_000

/** `mostMs`: until then each of them has ended, or is refused. */
export function createBatch(asking: Asking, mostMs: number): Batch {
  const until = performance.now() + mostMs
  const left = () => until - performance.now()
  let last: Promise<unknown> | undefined
  let room = MOST_CHARS

  /** The request may have taken minutes to come, and so may what was before: the credential is looked at again. */
  async function begin<T>(act: Act<T>): Promise<T> {
    await inTime(left(), asking.stay(), NOT_BEGUN)
    const leftMs = left()
    if (leftMs < Math.min(LEAST_MS, mostMs / 2)) throw new Fault('UNAVAILABLE', {}, NOT_BEGUN)
    return inTime(leftMs, act(leftMs), `It has not come to its end within ${mostMs / 1000} s.`)
  }

  return {
    beside: begin,
    inTurn(act) {
      const mine = last?.then(async () => {
        await setImmediate()
        if (asking.gone.aborted) throw new Fault('UNAVAILABLE')
        return begin(act)
      })
      const acting = mine ?? begin(act)
      last = acting.catch(() => undefined)
      return acting
    },
    async withRoom(read) {
      if (room === 0) throw full()
      const found = await read()
      const length = charsOf(found)
      if (length > room) {
        room = 0
        throw full()
      }
      room -= length
      return found
    },
  }
}

/** In less nothing comes to its end: its answer would only say that it may be done. */
const LEAST_MS = 400

const NOT_BEGUN = 'There was no time left, and it was not begun: send it once more, by a request of its own.'

const charsOf = ({ text = '', blob = '' }: Content) => text.length + blob.length

function full(): Fault {
  const most = `Resources and lists of tools may have ${MOST_CHARS} characters together in a batch`
  return new Fault('PAYLOAD_TOO_LARGE', { limitChars: MOST_CHARS }, `${most}; read this one by a request of its own.`)
}
