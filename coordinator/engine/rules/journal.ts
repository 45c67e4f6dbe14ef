import type { InputId, RunId } from '@windlass/shared/ids.ts'
import type { Completion, Delivery, EntryIdentity } from '@windlass/shared/wire/journal.ts'
import type { NewRun } from '../store/new-runs.ts'

/** Of one journal, as `charsOf` counts: a process that continues the run is handed all of it in one piece. */
export const MOST_CHARS = 32 * 1024 * 1024

/** So long are the texts by which calls of usual programs are told apart: arguments have 500 at most. */
const USUAL_CHARS = 700

/** What an entry counts: its result, and what else is longer than usual. */
export function charsOf(entry: Pick<NewEntry, 'parent' | 'name' | 'hash' | 'args' | 'site' | 'result'>): number {
  const { parent, name, hash, args, site, result } = entry
  const others = parent.length + name.length + hash.length + args.length + site.length
  return (result?.length ?? 0) + Math.max(0, others - USUAL_CHARS)
}

/** An entry to be written. `state` other than open: the program has completed it itself. */
export interface NewEntry extends EntryIdentity {
  /** That made the call; in the same transaction the run may come to its next. */
  attempt: number
  state: 'open' | 'done' | 'failed'
  result: string | null
  childRunId: RunId | null
  /** When it is due: milliseconds from now, or since the epoch. */
  due: Due | null
}

export type Due = { inMs: number } | { at: number }

export interface NewQuestion {
  id: InputId
  n: number
  prompt: string
  schemaText: string | null
  onTimeoutText: string | null
  timeoutMs: number | null
}

/** What happens to a run's journal within one transaction. */
export interface JournalChanges {
  entries: NewEntry[]
  questions: NewQuestion[]
  children: NewRun[]
  adopted: { n: number; position: number; attempt: number }[]
  drifted: { n: number; args: string }[]
  delivered: { delivery: Delivery; attempt: number }[]
  /** By others than the program. */
  completed: Completion[]
  /** This attempt threw, and there is to be another. `first`, `last`: see `LedBy`; null: nobody knows why it did. */
  thrown: { attempt: number; first: number | null; last: number | null } | null
  /** The next attempt takes nothing over: entries behind this one are forgotten. Null: none are. */
  forgotten: { after: number } | null
}

export function noChanges(): JournalChanges {
  return {
    entries: [],
    questions: [],
    children: [],
    adopted: [],
    drifted: [],
    delivered: [],
    completed: [],
    thrown: null,
    forgotten: null,
  }
}

export function isChanged(changes: JournalChanges): boolean {
  return Object.values(changes).some((change) => (Array.isArray(change) ? change.length > 0 : change !== null))
}
