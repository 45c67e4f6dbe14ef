import type { Log } from '@windlass/shared/log.ts'
import type { Db, Tx } from '../../db/client.ts'
import { pause } from '@windlass/shared/time.ts'

/** Puts right what was set by a clock of the database that was ahead, and has been set back since. */
export interface ClockSetBack {
  /** A pulse has found that it was set back, or may have been before this coordinator started. */
  found(): void
  /** Does these acts after each find, until the signal fires. They may be done by several coordinators at once. */
  run(acts: readonly (() => Promise<unknown>)[], signal: AbortSignal): Promise<void>
}

const AFTER_FAILURE_MS = 1000
/** What somebody is changing keeps its time until he has done so. */
const TRIES = 10
const PAUSE_MS = 1000

/** How much was put right, and how much was passed over because somebody else had locked it. */
export interface Pass {
  moved: number
  left: number
}

/** Answers how much was put right altogether. */
export async function inPasses(pass: () => Promise<Pass>, signal?: AbortSignal): Promise<number> {
  let changed = 0
  for (let tries = 0; tries < TRIES; tries++) {
    if (signal?.aborted) break
    const { moved, left } = await pass()
    changed += moved
    if (left === 0) break
    await pause(PAUSE_MS, signal)
  }
  return changed
}

const PAGE = 500

/** One pass over keys of text, in their order: so many of them in each transaction. */
export async function inPages(
  db: Db,
  keysAfter: (db: Db, after: string, limit: number) => Promise<string[]>,
  putBack: (tx: Tx, keys: readonly string[]) => Promise<Pass>,
): Promise<Pass> {
  const all = { moved: 0, left: 0 }
  for (let after = ''; ;) {
    const keys = await keysAfter(db, after, PAGE)
    if (keys.length === 0) return all
    const { moved, left } = await db.begin((tx) => putBack(tx, keys))
    all.moved += moved
    all.left += left
    after = keys.at(-1)!
  }
}

export function createClockSetBack(log: Log): ClockSetBack {
  let finding = Promise.withResolvers<void>()

  async function run(acts: readonly (() => Promise<unknown>)[], signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    for (;;) {
      await Promise.race([finding.promise, stopped])
      if (signal.aborted) return
      finding = Promise.withResolvers()
      await Promise.all(acts.map((act) => untilDone(act, signal)))
    }
  }

  async function untilDone(act: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await act()
        return
      } catch (error) {
        log.warn('clock.setBack.failed', { error })
        await pause(AFTER_FAILURE_MS, signal)
      }
    }
  }

  return { found: () => finding.resolve(), run }
}
