import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from './call.ts'
import { isNamed } from './identity.ts'

export interface Alike {
  call: Call
  record: JournalRecord
}

/**
 * Each call is compared with each entry once. With more pairs than these, 1 s of a processor, they are taken in their
 * order: whoever makes a thousand calls of one name with new arguments each time makes them in one loop.
 */
const MOST_PAIRS = 1_000_000

/** Finds, time and again, the two that are most alike, while calls come and entries go. */
export function createLikeness(isFree: (record: JournalRecord) => boolean) {
  const termsOf = remembered(({ args }: { args: string }) => countTerms(args))
  const ranked = new WeakMap<Call, Ranked>()

  function rank(call: Call, entries: readonly JournalRecord[], isMany: boolean): Ranked {
    const known = ranked.get(call)
    if (known) return known
    const named = entries.filter(
      (entry) => entry.kind === call.kind && entry.parent === call.parent && isNamed(entry, call.name),
    )
    const scored = named.map((record) => ({ record, score: isMany ? 0 : shared(termsOf(call), termsOf(record)) }))
    // Sorting keeps the order of positions among those with one score.
    const own = { left: scored.sort((a, b) => b.score - a.score), next: 0 }
    ranked.set(call, own)
    return own
  }

  function bestOf(own: Ranked): Scored | undefined {
    while (own.next < own.left.length && !isFree(own.left[own.next]!.record)) own.next += 1
    return own.left[own.next]
  }

  /** `entries`: in the order of their positions. */
  return function nearest(calls: readonly Call[], entries: readonly JournalRecord[]): Alike | undefined {
    const isMany = calls.length * entries.length > MOST_PAIRS
    let best: (Alike & { score: number }) | undefined
    for (const call of calls) {
      const own = bestOf(rank(call, entries, isMany))
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
