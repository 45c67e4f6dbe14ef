import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callOf, pathOf } from './identity.ts'

/** What of the failures of earlier attempts the next one does not get, and what goes with them. */
interface Failures {
  isLeftOut(record: JournalRecord): boolean
}

/**
 * Calls that are equal are counted, those included that fail. Where a program has made the same call again after it was
 * given a failure, the next attempt is given that failure too: it then takes the same way, and each of its calls finds
 * what the same one had come to. Any other failure is tried again.
 *
 * The failure that a program was given last before it threw is tried again in any case: the coordinator takes back that
 * it was given. With another outcome the calls that had followed may be for something else, so these are left out.
 */
export function createFailures(journal: readonly JournalRecord[]): Failures {
  const failed = journal.filter(({ state }) => state === 'failed')
  if (failed.length === 0) return { isLeftOut: () => false }
  const positions = lastPositions(journal, new Set(failed.map(callOf)))
  const behind = behindThose(journal, failed.filter(isTakenBack))
  const isHandled = (record: JournalRecord) =>
    wasHandled(record) || (record.delivered !== null && (positions.get(attemptOf(record)) ?? 0) > record.after)
  return { isLeftOut: (record) => behind.has(record) || (record.state === 'failed' && !isHandled(record)) }
}

/** An attempt has taken it over as a failure, which it does with such only. */
const wasHandled = ({ former }: JournalRecord) => Boolean(former)

/** Something was called before it was given, if only itself. */
const isTakenBack = ({ kind, delivered, former, after }: JournalRecord) =>
  kind === 'step' && delivered === null && !former && after > 0

const attemptOf = (record: JournalRecord) => `${record.attempt}\n${callOf(record)}`

/** Where each attempt has made the last of these calls. */
function lastPositions(journal: readonly JournalRecord[], calls: ReadonlySet<string>): ReadonlyMap<string, number> {
  const positions = new Map<string, number>()
  for (const record of journal) {
    if (!calls.has(callOf(record))) continue
    const key = attemptOf(record)
    positions.set(key, Math.max(positions.get(key) ?? 0, record.position))
  }
  return positions
}

/** The same calls that were made after these failures were given, and what was called inside of them. */
function behindThose(journal: readonly JournalRecord[], failures: JournalRecord[]): ReadonlySet<JournalRecord> {
  const behind = new Set<JournalRecord>()
  if (failures.length === 0) return behind
  const byCall = listsOf(failures, callOf)
  const byParent = listsOf(journal, ({ parent }) => parent)
  // A later attempt may have made the same calls, after that failure was tried again.
  const leave = (record: JournalRecord, attempt: number) => {
    if (behind.has(record) || record.attempt > attempt) return
    behind.add(record)
    if (record.kind !== 'step') return
    const inside = byParent.get(pathOf(record.parent, record.name, record.occurrence)) ?? []
    for (const each of inside) leave(each, attempt)
  }
  for (const record of journal) {
    for (const failure of byCall.get(callOf(record)) ?? [])
      if (isBehind(record, failure)) leave(record, failure.attempt)
  }
  return behind
}

const isBehind = (record: JournalRecord, failure: JournalRecord) =>
  record.attempt === failure.attempt && record.position > failure.after

function listsOf<T>(all: readonly T[], keyOf: (each: T) => string): ReadonlyMap<string, T[]> {
  const lists = new Map<string, T[]>()
  for (const each of all) {
    const list = lists.get(keyOf(each))
    if (list) list.push(each)
    else lists.set(keyOf(each), [each])
  }
  return lists
}
