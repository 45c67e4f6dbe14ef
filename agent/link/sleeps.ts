import { uptimeMs } from '../os/process-id.ts'

/** Notices that this machine was suspended: the clock by which silence is measured stood still meanwhile, and leases ran on. */
export interface Sleeps {
  /** Looks at the clocks. */
  look(): void
  /** How long it slept altogether since this moment of `performance.now()`. */
  since(at: number): number
}

/** Both clocks are read one after the other, and one of them counts in hundredths of a second. */
const NOISE_MS = 1000
const MOST_SLEEPS = 50

/** `elapsed` runs on while the machine sleeps; `awake` does not. */
export function createSleeps(elapsed = timeOfMachine, awake = (): number => performance.now()): Sleeps {
  const noticed: { at: number; ms: number }[] = []
  let lag = elapsed() - awake()
  return {
    look() {
      const now = elapsed() - awake()
      // A clock that was set back tells nothing about sleep.
      if (now - lag > NOISE_MS) {
        noticed.push({ at: awake(), ms: now - lag })
        noticed.splice(0, noticed.length - MOST_SLEEPS)
      }
      if (Math.abs(now - lag) > NOISE_MS) lag = now
    },
    since: (at) => noticed.filter((sleep) => sleep.at >= at).reduce((sum, sleep) => sum + sleep.ms, 0),
  }
}

/**
 * Since boot, sleep included, where /proc tells it. Elsewhere the wall clock: when that is set forward we take it for sleep, and end runs
 * that we might have kept.
 */
function timeOfMachine(): number {
  return uptimeMs() ?? Date.now()
}
