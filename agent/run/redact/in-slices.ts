import { createLoopTurns } from '../../os/loop-turns.ts'

/** Work that says by `yield` where something else may have its turn. */
export type Interruptible<T> = Generator<void, T>

/** What one slice of such work holds up. */
const SLICE_MS = 5

/** Of all works together: many at once hold up the event loop no longer than one. */
const nextTurn = createLoopTurns()

/** What takes less than a slice is done at once. */
export async function inSlices<T>(work: Interruptible<T>): Promise<T> {
  for (;;) {
    const end = performance.now() + SLICE_MS
    do {
      const { done, value } = work.next()
      if (done) return value
    } while (performance.now() < end)
    await nextTurn()
  }
}
