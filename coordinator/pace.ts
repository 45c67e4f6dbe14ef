import { probe } from '@windlass/shared/probe.ts'
import { createTurns } from './turns.ts'

/** Keeps long work from filling the event loop: pieces of it come one by one, and everything else between them. */
export interface Pace {
  /** Waits until a piece of this org's work may be done. */
  next(orgId: string): Promise<void>
}

/** One piece for each turn of the event loop, and each org in its turn. */
export function createPace(): Pace {
  const waiting = createTurns<() => void>()
  let isRunning = false

  function passOne() {
    const pass = waiting.take(() => true)
    isRunning = pass !== undefined
    if (!pass) return
    pass()
    setImmediate(passOne)
  }

  return {
    async next(orgId) {
      await new Promise<void>((pass) => {
        waiting.add(orgId, pass)
        if (isRunning) return
        isRunning = true
        setImmediate(passOne)
      })
      probe('pace.passed', { org: orgId })
    },
  }
}
