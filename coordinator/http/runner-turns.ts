import { createFifo, type Fifo } from '../db/fifo.ts'

/** Lets the requests of each runner come one by one, however many it sends at once. */
export interface RunnerTurns {
  /** What to wait for before a request of this runner is served; undefined: nothing. */
  next(runnerId: string): Promise<void> | undefined
}

/**
 * One request of a runner in each turn of the event loop. Requests of agents have no bucket: a busy one polls hundreds
 * of times a second. Hundreds at once from one of them would keep everybody else waiting for as long.
 */
export function createRunnerTurns(): RunnerTurns {
  /** Of runners with a request in this turn: those that wait for the next ones. */
  const busy = new Map<string, Fifo<() => void>>()

  function turn() {
    for (const [runnerId, waiting] of busy) {
      const goOn = waiting.shift()
      if (goOn) goOn()
      else busy.delete(runnerId)
    }
    if (busy.size > 0) setImmediate(turn)
  }

  return {
    next(runnerId) {
      const waiting = busy.get(runnerId)
      if (waiting) return new Promise((resolve) => waiting.push(resolve))
      if (busy.size === 0) setImmediate(turn)
      busy.set(runnerId, createFifo())
      return undefined
    },
  }
}
