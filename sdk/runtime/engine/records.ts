import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from './call.ts'
import { isHidden, isSameCall, keyOf, pathOf } from './identity.ts'
import { type Alike, createLikeness } from './likeness.ts'

type StepKey = Pick<JournalRecord, 'parent' | 'name' | 'occurrence'>

/** What is recorded of this attempt, while it is replayed. */
interface Records {
  /** Entries that no call of this process has been bound to yet, in the order of the calls. */
  unissued(): Iterable<JournalRecord>
  hasUnissued(): boolean
  /** The first that the last process had called inside of this step. */
  unissuedInside(step: StepKey): JournalRecord | undefined
  /** The entry that is the same call, and that no other is bound to; `among`: of these, bound or not. */
  match(call: Call, among?: ReadonlySet<JournalRecord>): JournalRecord | undefined
  /** Among the calls the one that is most like an entry of the same kind and name. */
  nearest(calls: readonly Call[]): Alike | undefined
  issue(record: JournalRecord): void
  /** The result to be given next, in the order in which the program was given them. */
  next(): JournalRecord | undefined
  /** Whether all was called that had been called by then. */
  isReady(record: JournalRecord): boolean
  given(): void
}

export function createRecords(journal: readonly JournalRecord[]): Records {
  const entries = journal.toSorted((a, b) => a.position - b.position)
  const byKey = new Map(entries.map((record) => [keyOf(record), record]))
  const hidden = entries.filter(isHidden)
  const unissued = new Map(entries.map((record) => [record.n, record]))
  const inside = new Map<string, JournalRecord[]>()
  for (const record of entries) {
    const beside = inside.get(record.parent)
    if (beside) beside.push(record)
    else inside.set(record.parent, [record])
  }
  const covered = new Set<number>()
  const results = entries.filter((record) => record.delivered !== null).sort((a, b) => a.delivered! - b.delivered!)
  const nearest = createLikeness(entries, ({ n }) => unissued.has(n))
  let given = 0

  /** A step that has its result is not executed: what was called inside of it is not called again. */
  function cover(step: JournalRecord): void {
    for (const record of inside.get(pathOf(step.parent, step.name, step.occurrence)) ?? []) {
      covered.add(record.n)
      unissued.delete(record.n)
      if (record.kind === 'step') cover(record)
    }
  }

  function unissuedInside({ parent, name, occurrence }: StepKey): JournalRecord | undefined {
    const within = pathOf(parent, name, occurrence)
    for (const record of inside.get(within) ?? []) {
      if (unissued.has(record.n)) return record
      const found = record.kind === 'step' ? unissuedInside(record) : undefined
      if (found) return found
    }
    return undefined
  }

  function next(): JournalRecord | undefined {
    while (covered.has(results[given]?.n ?? 0)) given += 1
    return results[given]
  }

  return {
    unissued: () => unissued.values(),
    hasUnissued: () => unissued.size > 0,
    unissuedInside,
    match: (call, among) => {
      const isFree = (record: JournalRecord) => (among ? among.has(record) : unissued.has(record.n))
      const record = byKey.get(keyOf(call))
      if (record && isFree(record)) return record
      return hidden.find((each) => isFree(each) && isSameCall(each, call))
    },
    nearest,
    issue: (record) => {
      unissued.delete(record.n)
      if (record.kind === 'step' && record.state !== 'open') cover(record)
    },
    next,
    isReady: (record) => {
      if (unissued.has(record.n) || covered.has(record.n)) return false
      // Deleting keeps the order, so the first is the least.
      const [least] = unissued.values()
      return least === undefined || least.position > record.after
    },
    given: () => {
      given += 1
    },
  }
}
