import type { TestContext } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import type { TestCoordinator } from './coordinator-types.ts'

/** After so long a credential, and what a request is about, are looked at again. */
export const SLOW_MS = 1100

/**
 * While this test goes on, a value takes as long to judge as behind others, and `act` is done before it ends.
 * `only`: JSON of the one value that is slow.
 */
export function whileJudged(
  t: TestContext,
  { deps }: TestCoordinator,
  act: () => Promise<unknown>,
  only?: string,
): void {
  const judge = deps.judge.judge.bind(deps.judge)
  t.mock.method(deps.judge, 'judge', async (...asked: Parameters<typeof judge>) => {
    if (only !== undefined && asked[1].text !== only) return judge(...asked)
    await act()
    await pause(SLOW_MS)
    return judge(...asked)
  })
}
