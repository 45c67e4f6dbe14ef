import { createFifo, type Fifo } from '../db/fifo.ts'

/** Lets the requests of each runner, or of each org, come one by one, however many it sends at once. */
export interface OneByOne {
  /** What to wait for before a request of this one is served; undefined: nothing. */
  next(id: string): Promise<void> | undefined
}

/**
 * One request of each in a turn of the event loop. Requests of agents have no bucket: a busy one polls hundreds of
 * times a second. Those to MCP take a millisecond or two each, mostly of the library. Hundreds at once would keep
 * everybody else waiting for as long.
 */
export function createOneByOne(): OneByOne {
  /** By whoever has a request in this turn: those that wait for the next ones. */
  const busy = new Map<string, Fifo<() => void>>()

  function turn() {
    for (const [id, waiting] of busy) {
      const goOn = waiting.shift()
      if (goOn) goOn()
      else busy.delete(id)
    }
    if (busy.size > 0) setImmediate(turn)
  }

  return {
    next(id) {
      const waiting = busy.get(id)
      if (waiting) return new Promise((resolve) => waiting.push(resolve))
      if (busy.size === 0) setImmediate(turn)
      busy.set(id, createFifo())
      return undefined
    },
  }
}
