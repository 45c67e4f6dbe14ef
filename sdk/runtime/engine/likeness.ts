import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from './call.ts'
import { isNamed } from './identity.ts'

export interface Alike {
  call: Call
  record: JournalRecord
}

/**
 * So many pairs are compared, 1 s of a processor. Calls beyond that take the entries that are left in their order:
 * whoever makes a thousand calls of one name with new arguments each time makes them in one loop.
 */
const MOST_PAIRS = 1_000_000

/**
 * Finds, time and again, the two that are most alike, while calls come and entries go. Each pair is compared once.
 * `entries`: in the order of their positions.
 */
export function createLikeness(entries: readonly JournalRecord[], isFree: (record: JournalRecord) => boolean) {
  const termsOf = remembered(({ args }: { args: string }) => countTerms(args))
  const ranked = new WeakMap<Call, Ranked>()
  const unscored = new Map<string, Scored[]>()
  let pairs = 0

  const namedLike = (call: Call) =>
    entries.filter((entry) => entry.kind === call.kind && entry.parent === call.parent && isNamed(entry, call.name))

  function rank(call: Call): Ranked {
    const known = ranked.get(call)
    if (known) return known
    const own = { left: candidates(call), next: 0 }
    ranked.set(call, own)
    return own
  }

  function candidates(call: Call): Scored[] {
    const key = `${call.kind}\n${call.parent}\n${call.name}`
    const inOrder = unscored.get(key) ?? namedLike(call).map((record) => ({ record, score: 0 }))
    unscored.set(key, inOrder)
    const free = inOrder.filter(({ record }) => isFree(record))
    pairs += free.length
    if (pairs > MOST_PAIRS) return inOrder
    const scored = free.map(({ record }) => ({ record, score: shared(termsOf(call), termsOf(record)) }))
    // Sorting keeps the order of positions among those with one score.
    return scored.sort((a, b) => b.score - a.score)
  }

  function bestOf(own: Ranked): Scored | undefined {
    while (own.next < own.left.length && !isFree(own.left[own.next]!.record)) own.next += 1
    return own.left[own.next]
  }

  return function nearest(calls: readonly Call[]): Alike | undefined {
    let best: (Alike & { score: number }) | undefined
    for (const call of calls) {
      const own = bestOf(rank(call))
      if (own && (!best || isBefore(own, best))) best = { call, ...own }
    }
    return best
  }
}

interface Scored {
  record: JournalRecord
  score: number
}

interface Ranked {
  left: Scored[]
  next: number
}

function isBefore(one: Scored, other: Scored): boolean {
  if (one.score !== other.score) return one.score > other.score
  return one.record.position < other.record.position
}

function remembered<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, V>()
  return (key) => {
    const value = known.get(key) ?? make(key)
    known.set(key, value)
    return value
  }
}

type Terms = ReadonlyMap<string, number>

/** Words and numbers. */
function countTerms(text: string): Terms {
  const counts = new Map<string, number>()
  for (const [term] of text.matchAll(TERM)) counts.set(term, (counts.get(term) ?? 0) + 1)
  return counts
}

/** The number of terms that both have. */
function shared(one: Terms, other: Terms): number {
  if (one.size > other.size) return shared(other, one)
  let count = 0
  for (const [term, times] of one) count += Math.min(times, other.get(term) ?? 0)
  return count
}

const TERM = /[\p{L}\p{N}_.-]+/gu
