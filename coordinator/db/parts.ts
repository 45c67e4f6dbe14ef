/** What is left of a commit that failed. It is tried in halves, until what made it fail is alone. */
export interface Part<T> {
  /** All of it: their keys are busy until the last of them has its answer. */
  items: readonly T[]
  /** What is still to be tried, in this order. */
  tries: T[][]
}

export interface Kinship<T> {
  orgOf: (item: T) => string
  keyOf: (item: T) => string
}

export const partOf = <T>(items: T[]): Part<T> => ({ items, tries: [items] })

/**
 * The first try of this part has failed. Orgs are parted first, as it is one of them as a rule: the others have their
 * answers after a few tries. Items of one key stay in one part, where they keep their order.
 */
export function halve<T>(part: Part<T>, { orgOf, keyOf }: Kinship<T>): Part<T>[] {
  const [failed, ...behind] = part.tries
  const groups = groupsOf(failed!, [orgOf, keyOf])
  if (!groups) return [{ items: part.items, tries: [...halvesOf(failed!), ...behind] }]
  return halvesOf(groups).map((half) => partOf(half.flat()))
}

/** By the first of these in which they differ. */
function groupsOf<T>(items: readonly T[], differences: ((item: T) => string)[]): T[][] | undefined {
  for (const difference of differences) {
    const groups = Map.groupBy(items, difference)
    if (groups.size > 1) return [...groups.values()]
  }
  return undefined
}

export function halvesOf<T>(items: readonly T[]): T[][] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)]
}

/** Each a key of its own. */
export function createNumbers(): () => string {
  let number = 0
  return () => String(number++)
}
