import type { LedBy } from '@windlass/shared/model/ending.ts'
import type { Call } from './call.ts'

/** The failures that the program was given, by the errors that its calls rejected with. */
export interface GivenFailures {
  add(error: Error, call: Pick<Call, 'n' | 'parent'>): void
  /** The function of a step has thrown that: the error that the program is given for it leads to the same. */
  threw(step: Pick<Call, 'n'>, thrown: unknown): void
  /** Those to which what was thrown leads. Undefined: to none, so nobody knows why. */
  behind(thrown: unknown): LedBy | undefined
}

interface Numbered {
  n: number
  /** The so many-th that was given. */
  order: number
  isInStep: boolean
}

interface Given extends Numbered {
  /** The first to which it leads. */
  first: Numbered
}

/** Where errors say which others they come from. */
const LEADS = ['cause', 'errors', 'error', 'suppressed'] as const

/** Errors that are looked at: some milliseconds. What more there is may lead to others, so nobody knows. */
const MOST_LOOKS = 10_000

const earliest = (all: readonly Numbered[]) => all.reduce((a, b) => (b.order < a.order ? b : a))

export function createGivenFailures(): GivenFailures {
  const given = new WeakMap<object, Given>()
  /** The first failure that the function of a step has thrown on, by the number of the step. */
  const thrownOn = new Map<number, Numbered>()
  let order = 0

  function leadsTo(thrown: unknown): Given[] {
    const found: Given[] = []
    const seen = new Set<unknown>([thrown])
    // A set is walked to what is added meanwhile.
    for (const each of seen) {
      if (seen.size > MOST_LOOKS) return []
      if (typeof each !== 'object' || each === null) continue
      const failure = given.get(each)
      if (failure) found.push(failure)
      else for (const next of leadsOf(each)) seen.add(next)
    }
    return found
  }

  return {
    add(error, { n, parent }) {
      const own = { n, order: ++order, isInStep: parent !== '' }
      given.set(error, { ...own, first: thrownOn.get(n) ?? own })
      thrownOn.delete(n)
    },
    threw({ n }, thrown) {
      // What failed inside of it is tried again with it.
      const firsts = leadsTo(thrown).map(({ first }) => first)
      const outside = firsts.filter(({ isInStep }) => !isInStep)
      if (n > 0 && outside.length > 0) thrownOn.set(n, earliest(outside))
    },
    behind(thrown) {
      const found = leadsTo(thrown)
      if (found.length === 0) return undefined
      const last = found.reduce((a, b) => (b.order > a.order ? b : a))
      return { first: earliest(found.map(({ first }) => first)).n, last: last.n }
    },
  }
}

/** Whatever a program has put there: getters that throw, proxies that were revoked. */
function leadsOf(error: object): unknown[] {
  try {
    if (Array.isArray(error)) return error.slice(0, MOST_LOOKS)
    return error instanceof Error ? LEADS.map((key) => valueOf(error, key)) : []
  } catch {
    return []
  }
}

function valueOf(error: Error, key: string): unknown {
  try {
    return Reflect.get(error, key)
  } catch {
    return undefined
  }
}
