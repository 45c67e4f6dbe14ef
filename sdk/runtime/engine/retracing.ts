import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { isHidden, isSameCall, keyOf, pathOf, type CallKey } from './identity.ts'
import { comesBefore, lastGiven, type FormerResult } from './inbox.ts'
import type { Port } from './port.ts'

/**
 * A program that opens a port or polls never stands still. One that makes its calls as before is where it was sooner,
 * but for work that takes longer than this; one that goes another way loses this long once.
 */
export const PATIENCE_MS = 30_000

/**
 * A program that is given what an earlier process was given, and has not been led there by a replay. It comes to its
 * calls as it came to them before, but work that is no step takes its time again: what is asked for by now may be what
 * was given last. So a result waits for those that were given before it, and for the calls that had been made by then,
 * until it is known that they do not come.
 */
export interface Retracing {
  /** The program makes this call. */
  called(call: CallKey): void
  /** What was called inside of this step is not called again, or the step has ended without it. */
  cover(step: CallKey): void
  /** Whether the program may be given this. Undefined: what no process before was given. */
  mayGive(former?: FormerResult): boolean
  /** What this waits for does not come: the program stands still, and has gone another way. */
  giveUpFor(former?: FormerResult): void
  /** Nothing waits any more. */
  giveUp(): void
  readonly isOver: boolean
}

/**
 * `records`: what the program has not called yet, or not in this attempt. `isLeftOut`: it is not given what has come of
 * that call.
 */
export function createRetracing(
  records: readonly JournalRecord[],
  isLeftOut: (record: JournalRecord) => boolean = () => false,
): Retracing {
  const awaited = awaitedOf(records, isLeftOut)
  const results = awaited.filter((each) => !isLeftOut(each) && lastGiven(each)).sort(inOrder)
  const given = createWaiting(results)
  const calls = callsBefore(results, awaited)
  const inside = Map.groupBy(
    records.filter(({ parent }) => parent !== ''),
    ({ parent }) => parent,
  )
  const hidden = records.filter(isHidden)
  const gone = new Set<string>()
  let isOver = results.length === 0

  /** The calls of the attempt that was given it, and how many it had made by then. */
  function madeBy(former: FormerResult): [calls: Waiting | undefined, made: number] {
    const [attempt, , made = 0] = lastGiven(former) ?? [0, 0]
    return [calls.get(attempt), made]
  }

  function cover({ parent, name, occurrence }: CallKey): void {
    for (const record of inside.get(pathOf(parent, name, occurrence)) ?? []) {
      gone.add(keyOf(record))
      if (record.kind === 'step') cover(record)
    }
  }

  return {
    called(call) {
      if (isOver) return
      gone.add(keyOf(call))
      for (const record of hidden) if (isSameCall(record, call)) gone.add(keyOf(record))
    },
    cover(step) {
      if (!isOver && inside.size > 0) cover(step)
    },
    mayGive(former) {
      if (isOver) return true
      const next = given.next(gone)
      if (!next) isOver = [...calls.values()].every((each) => !each.next(gone))
      else if (!former || comesBefore(next, former)) return false
      if (isOver || !former) return true
      const [made, count] = madeBy(former)
      return (made?.next(gone)?.position ?? Infinity) > count
    },
    giveUpFor(former) {
      if (!former) isOver = true
      if (!former) return
      given.forgetWhile((each) => comesBefore(each, former), gone)
      const [made, count] = madeBy(former)
      made?.forgetWhile(({ position }) => position <= count, gone)
    },
    giveUp() {
      isOver = true
    },
    get isOver() {
      return isOver
    },
  }
}

export interface Patience extends Retracing {
  /** `first`: what it could be given. True: it is given that. */
  standsStill(first: { former?: FormerResult } | undefined, handover: { isWithholding: boolean }): boolean
}

/** `ms`: nothing waits longer than that for what does not come. */
export function withPatience(
  retracing: Retracing,
  { port, turnSoon }: { port: Pick<Port, 'later'>; turnSoon: () => void },
  ms?: number,
): Patience {
  let stopTimer: (() => void) | undefined

  function giveUp(): void {
    if (retracing.isOver) return
    retracing.giveUp()
    turnSoon()
  }

  return {
    ...retracing,
    mayGive(former) {
      const mayGive = retracing.mayGive(former)
      if (!mayGive && ms !== undefined) stopTimer ??= port.later(ms, false, giveUp)
      if (!mayGive) return false
      stopTimer?.()
      stopTimer = undefined
      return true
    },
    giveUp,
    standsStill(first, { isWithholding }) {
      if (!first) giveUp()
      // What this waits for was not begun: the next attempt comes there.
      else if (!isWithholding) retracing.giveUpFor(first.former)
      if (!first || !retracing.mayGive(first.former)) return false
      turnSoon()
      return true
    },
    get isOver() {
      return retracing.isOver
    },
  }
}

interface Waiting {
  /** The first that has not gone. */
  next(gone: ReadonlySet<string>): JournalRecord | undefined
  /** Those that come first, and are such. */
  forgetWhile(isSuch: (record: JournalRecord) => boolean, gone: Set<string>): void
}

function createWaiting(records: readonly JournalRecord[]): Waiting {
  let at = 0

  function next(gone: ReadonlySet<string>): JournalRecord | undefined {
    while (at < records.length && gone.has(keyOf(records[at]!))) at += 1
    return records[at]
  }

  return {
    next,
    forgetWhile(isSuch, gone) {
      for (let each = next(gone); each && isSuch(each); each = next(gone)) gone.add(keyOf(each))
    },
  }
}

/** By their attempts: those that had been made when the last of these results was given. */
function callsBefore(results: readonly JournalRecord[], calls: readonly JournalRecord[]): ReadonlyMap<number, Waiting> {
  const most = new Map<number, number>()
  for (const record of results) {
    const [attempt, , made = 0] = lastGiven(record)!
    most.set(attempt, Math.max(most.get(attempt) ?? 0, made))
  }
  const byAttempt = Map.groupBy(calls, ({ attempt }) => attempt)
  return new Map(
    [...most].map(([attempt, made]) => {
      const before = (byAttempt.get(attempt) ?? []).filter(({ position }) => position <= made)
      return [attempt, createWaiting(before.sort((a, b) => a.position - b.position))]
    }),
  )
}

/**
 * Without those that may have followed from a failure which is tried again: with another outcome the program does not
 * call them.
 */
function awaitedOf(records: readonly JournalRecord[], isLeftOut: (record: JournalRecord) => boolean): JournalRecord[] {
  const least = new Map<number, number>()
  const isBehind = (attempt: number, calls: number) =>
    least.set(attempt, Math.min(least.get(attempt) ?? Infinity, calls))
  for (const record of records) {
    if (record.state !== 'failed' || !isLeftOut(record)) continue
    const given = lastGiven(record)
    if (given) isBehind(given[0], given[2] ?? 0)
    // The note that it was given is taken back.
    else if (record.after > 0) isBehind(record.attempt, record.after)
  }
  return records.filter(({ attempt, position }) => position <= (least.get(attempt) ?? Infinity))
}

const inOrder = (a: JournalRecord, b: JournalRecord) => (comesBefore(a, b) ? -1 : 1)
