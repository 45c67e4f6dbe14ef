import { setTimeout as wait } from 'node:timers/promises'
import { log, phase } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  /**
   * The number to start from.
   * @minimum 0
   */
  from?: number
  /**
   * Milliseconds between two numbers.
   * @minimum 0
   */
  intervalMs?: number
}

export async function run({ from = 5, intervalMs = 1000 }: Input, context: RunContext): Promise<{ counted: number }> {
  for (let left = from; left > 0; left--) {
    phase(`${left} left`)
    log(`${left} …`)
    // The signal aborts when the run is cancelled or takes too long; the wait then throws, and so does `run`.
    await wait(intervalMs, undefined, { signal: context.signal })
  }
  log('lift-off')
  return { counted: from }
}
