import { setTimeout as wait } from 'node:timers/promises'
import { log } from 'windlass'
import type { RunContext } from 'windlass'

/** Waits for a long time, and puts things in order when it is told to stop. */
export async function run(input: { tag: string }, context: RunContext): Promise<{ tag: string }> {
  log(`begun ${input.tag}`)
  try {
    await wait(60_000, undefined, { signal: context.signal })
  } finally {
    log(`tidied up ${input.tag}`)
  }
  return { tag: input.tag }
}
