import { createPace } from './pace.ts'

/** For this long one piece of work may keep all others waiting. Nearly every one is through in less. */
const SLICE_MS = 5

/** What serves several orgs at once, or is asked for by somebody who is not known yet. */
const NO_ORG = ''

/**
 * Those who have had a slice stand in line: one of them goes on in each turn of the event loop, and the orgs in turn.
 * With one line for all, 300 bodies of one org kept each step of another's waiting for all of them.
 */
const line = createPace()

/** Resolves in a turn of the event loop in which nobody else of those in line goes on. */
export function turnInLine(orgId = NO_ORG): Promise<void> {
  return line.next(orgId)
}

/** To be called time and again by long work, which awaits what it returns: undefined as long as its slice lasts. */
export function createSlices(orgId?: string): () => Promise<void> | undefined {
  let since = performance.now()

  async function next(): Promise<void> {
    await turnInLine(orgId)
    since = performance.now()
  }

  return () => (performance.now() - since < SLICE_MS ? undefined : next())
}

/** Maps items of which each may take a millisecond. */
export async function mapInSlices<T, U>(items: readonly T[], map: (item: T) => U, orgId?: string): Promise<U[]> {
  const slice = createSlices(orgId)
  const mapped: U[] = []
  for (const item of items) {
    mapped.push(map(item))
    await slice()
  }
  return mapped
}
