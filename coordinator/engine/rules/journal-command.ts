import type { JournalError, JournalOp } from '@windlass/shared/wire/journal.ts'
import type { NewRun } from '../store/new-runs.ts'

/** What a program asks of its journal. */
export interface JournalCommand {
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
  /** The call names no environment, so the child has that of its parent. */
  inherits: boolean
}

export function refusal(message: string, detail: Record<string, unknown>): JournalError {
  return { name: 'CallRefusedError', code: 'CALL_REFUSED', message, detail }
}
