import { createFifo } from '../db/fifo.ts'

/** Requests that begin in one turn of the event loop: some 2 ms. */
const MOST_IN_TURN = 32

/** Lets all requests come in turns. */
export interface RequestTurns {
  /** What to wait for before a request is looked at; undefined: nothing. */
  next(): Promise<void> | undefined
}

/**
 * Of requests that are answered at once, µWS takes the next one out of what it has read: 18,000 of one read, and it
 * reads on in the same turn while the socket is full. So those of a turn are counted, whoever sends them. The next one
 * waits, and with it its connection: when another request follows there in the same turn, µWS ends it.
 */
export function createRequestTurns(): RequestTurns {
  const waiting = createFifo<() => void>()
  let begun = 0

  function turn() {
    for (begun = 0; begun < MOST_IN_TURN && waiting.length > 0; begun++) waiting.shift()!()
    if (begun > 0) setImmediate(turn)
  }

  return {
    next() {
      if (begun === MOST_IN_TURN) return new Promise((resolve) => waiting.push(resolve))
      if (begun === 0) setImmediate(turn)
      begun += 1
      return undefined
    },
  }
}
