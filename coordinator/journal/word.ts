import type { JournalError, JournalOp } from '@windlass/shared/wire/journal.ts'
import type { NewRun } from '../runs/store-new.ts'

/** What a program said about its journal. */
export interface Word {
  op: JournalOp
  /** The run that its call is to create. */
  child?: PreparedCall
  /** Why its call or question cannot be made. */
  refused?: JournalError
  /** Why nobody can tell whether it can: the run has used up its time for that. */
  spent?: string
}

export interface PreparedCall {
  run: NewRun
  /** The call names no environment, so the parent's counts before that of the child's descriptor. */
  inherits: boolean
  /** Why it cannot be made by a parent that has no environment: that of the child's descriptor does not exist. */
  refusedAlone?: JournalError
}
