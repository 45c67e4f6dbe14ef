import type { TestContext } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { budgetMs } from '@windlass/shared/test/_kit/rounds.ts'

/** A group that fails is made smaller for so long: the smallest by then is told. */
const REDUCING_MS = 30_000
/** Tests that share the budget of a storm: they are played one after the other. */
const SHARING = 10
/** A group of cases takes a second on a busy machine, and each test plays one at least. */
const LEAST_MS = 5000

export interface Played<T> {
  /** Cases that one statement takes together. */
  group: fc.Arbitrary<T>
  groups: number
  /** How many cases a group has. */
  size: (group: T) => number
}

/** Plays so many groups of cases, or as many as a storm has time for, and says how many cases they had. */
export async function playCases<T>(
  t: TestContext,
  { group, groups, size }: Played<T>,
  holds: (group: T) => Promise<void>,
): Promise<void> {
  let played = 0
  let failedAt = Infinity
  let last: Promise<void> = Promise.resolve()
  const property = fc.asyncProperty(group, async (cases) => {
    if (performance.now() - failedAt > REDUCING_MS) return
    played += size(cases)
    try {
      await (last = holds(cases))
    } catch (error) {
      failedAt = Math.min(failedAt, performance.now())
      throw error
    }
  })
  const budget = budgetMs()
  const until = budget === undefined ? {} : { interruptAfterTimeLimit: Math.max(LEAST_MS, budget / SHARING) }
  const { reporter, ...parameters } = repeatable(t)
  try {
    const details = await fc.check(property, { numRuns: groups, ...until, ...parameters })
    if (details.interrupted && details.numRuns === 0 && played > 0) {
      // On a busy machine the first group alone takes longer than the limit. It counts, and no other does.
      t.diagnostic(`seed ${details.seed}`)
      await last
    } else reporter(details)
  } finally {
    // The time limit ends the playing amid a group, and what that goes on to write would meet the next test.
    await last.catch(() => {})
  }
  t.diagnostic(`${played} cases`)
}
