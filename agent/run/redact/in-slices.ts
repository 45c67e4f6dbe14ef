/** Work that says by `yield` where something else may have its turn. */
export type Interruptible<T> = Generator<void, T>

/** What one slice of such work holds up. */
const SLICE_MS = 5

/** Of all works together one has a slice in each turn of the event loop: many at once hold it up no longer than one. */
let turn: Promise<void> = Promise.resolve()

function nextTurn(): Promise<void> {
  turn = turn.then(() => new Promise((resolve) => void setImmediate(resolve)))
  return turn
}

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
