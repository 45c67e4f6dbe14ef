import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from './call.ts'
import { createFailures } from './failures.ts'
import { isHidden, isSameCall, keyOf } from './identity.ts'

/** What earlier attempts, lost by a crash, have bought, still wait for, or have got past. */
interface Former {
  /** Takes the entry that is the same call out, so that it serves once. */
  take(call: Call): JournalRecord | undefined
  /** The next attempt is not given what has come of it. */
  isLeftOut(record: JournalRecord): boolean
}

export function createFormer(journal: readonly JournalRecord[]): Former {
  const byKey = new Map<string, JournalRecord>()
  const failures = createFailures(journal)
  for (const record of journal.toSorted((a, b) => a.n - b.n)) {
    // A failure that nobody has got past is tried again. What is there goes before what is still to come.
    if (failures.isLeftOut(record)) continue
    if (record.state === 'done' || byKey.get(keyOf(record))?.state !== 'done') byKey.set(keyOf(record), record)
  }
  const hidden = [...byKey.values()].filter(isHidden)
  return {
    isLeftOut: (record) => failures.isLeftOut(record),
    take: (call) => {
      const same = hidden.find((each) => byKey.has(keyOf(each)) && isSameCall(each, call))
      const record = byKey.get(keyOf(call)) ?? same
      if (record) byKey.delete(keyOf(record))
      return record
    },
  }
}
