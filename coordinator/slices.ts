import { setImmediate } from 'node:timers/promises'

/** For this long one piece of work may keep all others waiting. Nearly every one is through in less. */
const SLICE_MS = 5

/** Those who have had a slice stand in line: one of them goes on in each turn of the event loop. */
let line: Promise<void> = Promise.resolve()

/** Resolves in a turn of the event loop in which nobody else of those in line goes on. */
export function turnInLine(): Promise<void> {
  line = line.then(() => setImmediate())
  return line
}

/** To be called time and again by long work, which awaits what it returns: undefined as long as its slice lasts. */
export function createSlices(): () => Promise<void> | undefined {
  let since = performance.now()

  async function next(): Promise<void> {
    await turnInLine()
    since = performance.now()
  }

  return () => (performance.now() - since < SLICE_MS ? undefined : next())
}

/** Maps items of which each may take a millisecond. */
export async function mapInSlices<T, U>(items: readonly T[], map: (item: T) => U): Promise<U[]> {
  const slice = createSlices()
  const mapped: U[] = []
  for (const item of items) {
    mapped.push(map(item))
    await slice()
  }
  return mapped
}
