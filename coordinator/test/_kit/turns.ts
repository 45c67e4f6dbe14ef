import type { TestContext } from 'node:test'

/** Turns of the event loop that others have while something is done whose slices end at each look at the clock. */
export async function turnsBeside(t: TestContext, act: () => Promise<unknown>): Promise<number> {
  let now = 0
  const clock = t.mock.method(performance, 'now', () => (now += 1000))
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  await act()
  clearImmediate(next)
  clock.mock.restore()
  return turns
}
