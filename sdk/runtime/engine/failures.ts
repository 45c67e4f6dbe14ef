import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callOf, pathOf } from './identity.ts'

/** What of the failures of earlier attempts the next one does not get, and what goes with them. */
interface Failures {
  isLeftOut(record: JournalRecord): boolean
}

/**
 * Which failures the next attempt is given again hangs on how the attempt that was given them has ended.
 *
 * Lost: the failure was not why. Where the program has called anything after it was given it, the next attempt is given
 * it too: it takes the same way, and each of its calls finds what the same one had come to.
 *
 * Thrown, and it is known for which failures: what the program had got past before the first of these has been written
 * as taken over by the coordinator, and is given again.
 *
 * Thrown, else: the failure may be why, so it is tried again, whatever was called after it to tidy up, and whatever
 * attempts that were lost before had made of it. Not where the same call was made after it, as equal calls are counted:
 * a later one would get what another had come to. Nor where an attempt before had got further, with what this one has
 * not asked for.
 *
 * The failure of a step that a program was given last before it threw is tried again in any case: the coordinator takes
 * back that it was given. With another outcome the same calls that had followed may be for something else, so these are
 * left out.
 */
export function createFailures(journal: readonly JournalRecord[]): Failures {
  const failed = journal.filter(({ state }) => state === 'failed')
  if (failed.length === 0) return { isLeftOut: () => false }
  const inside = createInside(journal)
  const behind = behindThose(journal, failed.filter(isTakenBack), inside)
  const calls = new Set(failed.map(callOf))
  const ofCalls = journal.filter((record) => calls.has(callOf(record)))
  const lastOf = mostBy(journal, attemptOf, ({ position }) => position)
  const got = journal.filter((record) => record.state !== 'failed' && !behind.has(record))
  const lastGot = mostBy(got, scopeOf, ({ position }) => position)
  const lastOfCall = mostBy(ofCalls, callInAttempt, ({ position }) => position)
  const further = furthest(got.filter((record) => calls.has(callOf(record))))

  /** The program has made the same call again. */
  const isMadeAgain = (record: JournalRecord) =>
    record.delivered !== null && (lastOfCall.get(callInAttempt(record)) ?? 0) > record.after

  function isHandled(record: JournalRecord): boolean {
    const { delivered, former, lost, attempt, after } = record
    // Taken over by an attempt that was not given it yet.
    if (delivered === null) return Boolean(former)
    if (isMadeAgain(record)) return true
    if (lost && (lastOf.get(attempt) ?? 0) > after) return true
    return Boolean(former) && (lost !== false || hasGotFurther(record))
  }

  /** An attempt before that which threw: what it has bought would be bought again, or for nothing. */
  function hasGotFurther(record: JournalRecord): boolean {
    const [attempt, , after = Infinity] = record.former ?? [0, 0]
    return further(record) > record.occurrence || (lastGot.get(scopeOf({ ...record, attempt })) ?? 0) > after
  }

  const triedAgain = failed.filter((record) => record.kind === 'step' && record.former && !isHandled(record))
  const within = withinThose(triedAgain, inside)
  const isLeftOut = (record: JournalRecord) => !isHandled(record) || (within.has(record) && !isMadeAgain(record))
  return { isLeftOut: (record) => behind.has(record) || (record.state === 'failed' && isLeftOut(record)) }
}

/** Something was called before it was given, if only itself. */
const isTakenBack = ({ kind, delivered, former, after }: JournalRecord) =>
  kind === 'step' && delivered === null && !former && after > 0

const attemptOf = ({ attempt }: JournalRecord) => attempt
const scopeOf = ({ attempt, parent }: Pick<JournalRecord, 'attempt' | 'parent'>) => `${attempt}\n${parent}`
const callInAttempt = (record: JournalRecord) => `${record.attempt}\n${callOf(record)}`

/** The largest of the numbers that the records of a key have. */
function mostBy<K>(
  records: readonly JournalRecord[],
  keyOf: (record: JournalRecord) => K,
  numberOf: (record: JournalRecord) => number,
): ReadonlyMap<K, number> {
  const most = new Map<K, number>()
  for (const record of records) {
    const key = keyOf(record)
    most.set(key, Math.max(most.get(key) ?? 0, numberOf(record)))
  }
  return most
}

/** How many of the same calls the attempts before that of a record have made, at most. */
function furthest(got: readonly JournalRecord[]): (record: JournalRecord) => number {
  const byCall = new Map<string, Map<number, number>>()
  for (const record of got) {
    const call = callOf(record)
    const byAttempt = byCall.get(call) ?? new Map<number, number>()
    byCall.set(call, byAttempt)
    byAttempt.set(record.attempt, Math.max(byAttempt.get(record.attempt) ?? 0, record.occurrence))
  }
  return (record) => {
    let most = 0
    for (const [attempt, occurrence] of byCall.get(callOf(record)) ?? [])
      if (attempt < record.attempt) most = Math.max(most, occurrence)
    return most
  }
}

type Inside = (step: JournalRecord) => readonly JournalRecord[]

/** What was called inside of a step, by whichever attempt. */
function createInside(journal: readonly JournalRecord[]): Inside {
  const byParent = listsOf(journal, ({ parent }) => parent)
  return ({ kind, parent, name, occurrence }) =>
    (kind === 'step' && byParent.get(pathOf(parent, name, occurrence))) || []
}

/** The same calls that were made after these failures were given, and what was called inside of them. */
function behindThose(
  journal: readonly JournalRecord[],
  failures: JournalRecord[],
  inside: Inside,
): ReadonlySet<JournalRecord> {
  const behind = new Set<JournalRecord>()
  if (failures.length === 0) return behind
  const byCall = listsOf(failures, callOf)
  // A later attempt may have made the same calls, after that failure was tried again.
  const leave = (record: JournalRecord, attempt: number) => {
    if (behind.has(record) || record.attempt > attempt) return
    behind.add(record)
    for (const each of inside(record)) leave(each, attempt)
  }
  for (const record of journal) {
    for (const failure of byCall.get(callOf(record)) ?? [])
      if (isBehind(record, failure)) leave(record, failure.attempt)
  }
  return behind
}

const isBehind = (record: JournalRecord, failure: JournalRecord) =>
  record.attempt === failure.attempt && record.position > failure.after

/**
 * What was called inside of these steps before their failures were handed over. The attempt that threw was given these,
 * and so has not been given what had led to them.
 */
function withinThose(steps: readonly JournalRecord[], inside: Inside): ReadonlySet<JournalRecord> {
  const within = new Set<JournalRecord>()
  const enter = (step: JournalRecord, attempt: number) => {
    for (const each of inside(step)) {
      if (within.has(each) || each.attempt >= attempt) continue
      within.add(each)
      enter(each, attempt)
    }
  }
  // The last first: with it goes all that goes with those before it.
  for (const step of steps.toSorted((a, b) => b.attempt - a.attempt)) enter(step, step.attempt)
  return within
}

function listsOf<T>(all: readonly T[], keyOf: (each: T) => string): ReadonlyMap<string, T[]> {
  const lists = new Map<string, T[]>()
  for (const each of all) {
    const list = lists.get(keyOf(each))
    if (list) list.push(each)
    else lists.set(keyOf(each), [each])
  }
  return lists
}
