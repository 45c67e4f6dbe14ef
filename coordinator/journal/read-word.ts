import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { JournalError, JournalOp } from '@windlass/shared/wire/journal.ts'
import { questionTrouble } from '../inputs/judge.ts'
import type { PrepareDeps } from '../runs/trigger.ts'
import { type PreparedCall, prepareCall, refusal } from './children.ts'
import { readOp } from './read-op.ts'

/** What a program said about its journal. */
export interface Word {
  op: JournalOp
  /** The run that its call is to create. */
  child?: PreparedCall
  /** Why its call or question cannot be made. */
  refused?: JournalError
}

/** Undefined for what cannot be read. Done before anything is locked: it looks up workflows and compiles schemas. */
export async function readWord(
  deps: PrepareDeps,
  from: { orgId: OrgId; runId: RunId },
  text: string,
): Promise<Word | undefined> {
  const op = readOp(text)
  if (op?.op !== 'open') return op && { op }
  if (op.ask.for === 'child') return { op, ...(await prepareCall(deps, from, op.entry, op.ask)) }
  const trouble = op.ask.for === 'input' ? questionTrouble(op.ask.schemaText, op.ask.onTimeoutText) : undefined
  return trouble === undefined ? { op } : { op, refused: refusal(trouble, { path: 'schema' }) }
}
