import type { JournalRecord, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { Call } from './call.ts'
import type { Deadline } from './outbox.ts'
import type { Outcome } from './step.ts'

/** A call that the program has not been given a result of. */
export interface Pending {
  call: Call
  /** What is recorded of it by an earlier process. */
  record?: JournalRecord
  /** What a step has come to, while that is being committed. */
  outcome?: Outcome
  stopTimer?: () => void
  /** A sleep by a timer of this process. */
  isShort?: boolean
}

const KINDS = ['input', 'child', 'sleep'] as const satisfies SuspendKind[]

/** What people are told that the program waits for. Undefined: for nothing that others complete. */
export function waitedFor(pending: Iterable<Pending>): SuspendKind | undefined {
  const kinds = new Set<string>()
  for (const { call } of pending) kinds.add(call.kind)
  return KINDS.find((kind) => kinds.has(kind))
}

/** What an earlier process had done, or was given. */
export function outcomeBefore(record: JournalRecord | undefined): Outcome | undefined {
  if (!record || record.state === 'open') return undefined
  // What others have completed is over once the program was given it.
  if (record.completed !== null && record.delivered === null && !record.former) return undefined
  return { state: record.state, result: record.result ?? 'null' }
}

/** What it has come to, kept or not. */
export function outcomeOf({ record, outcome }: Pending): Outcome | undefined {
  if (outcome || !record || record.state === 'open') return outcome
  return { state: record.state, result: record.result ?? 'null' }
}

/**
 * Before what a further attempt has to know that the program was given this. A wait that is over does not reject there:
 * its journal must not show what followed from it alone. What has failed, or was given while something else was waited
 * for that may be there as well by then, tells which way the program went.
 */
export function deadlineOf({ call, record, isShort }: Pending, state: Outcome['state'], pending: number): Deadline {
  if (call.kind !== 'step' && !isShort && !outcomeBefore(record)) return 'anything'
  return state === 'failed' || pending > 1 ? 'calls' : 'parking'
}

/** Not by a copy of the numbers: 25,000 results may wait for a program that waits for one thing. */
export function isAnyPending(numbers: Iterable<number>, pending: ReadonlyMap<number, Pending>): boolean {
  for (const n of numbers) if (pending.has(n)) return true
  return false
}
