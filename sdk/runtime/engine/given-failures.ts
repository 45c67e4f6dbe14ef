import type { LedBy } from '@windlass/shared/model/ending.ts'

/** The failures that the program was given, by the errors that its calls rejected with. */
export interface GivenFailures {
  add(error: Error, n: number): void
  /** Those to which what was thrown leads. Undefined: to none, so nobody knows why. */
  behind(thrown: unknown): LedBy | undefined
}

/** Where errors say which others they come from. */
const LEADS = ['cause', 'errors', 'error', 'suppressed'] as const

/** Errors that are looked at: some milliseconds. What more there is may lead to others, so nobody knows. */
const MOST_LOOKS = 10_000

export function createGivenFailures(): GivenFailures {
  const entries = new WeakMap<object, { n: number; order: number }>()
  let order = 0

  return {
    add: (error, n) => void entries.set(error, { n, order: ++order }),
    behind(thrown) {
      const found: { n: number; order: number }[] = []
      const seen = new Set<unknown>([thrown])
      // A set is walked to what is added meanwhile.
      for (const each of seen) {
        if (seen.size > MOST_LOOKS) return undefined
        if (typeof each !== 'object' || each === null) continue
        const entry = entries.get(each)
        if (entry) found.push(entry)
        else for (const next of leadsOf(each)) seen.add(next)
      }
      if (found.length === 0) return undefined
      const inOrder = found.toSorted((a, b) => a.order - b.order)
      return { first: inOrder[0]!.n, last: inOrder.at(-1)!.n }
    },
  }
}

/** Whatever a program has put there, with getters of its own. */
function leadsOf(error: object): readonly unknown[] {
  try {
    if (Array.isArray(error)) return error.slice(0, MOST_LOOKS)
    return error instanceof Error ? LEADS.map((key): unknown => Reflect.get(error, key)) : []
  } catch {
    return []
  }
}
