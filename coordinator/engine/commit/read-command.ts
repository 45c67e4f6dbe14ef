import { MOST_MARKS_OF_INPUT } from '@windlass/shared/json-nesting.ts'
import { questionTrouble } from './judge-answer.ts'
import type { PrepareDeps } from './trigger.ts'
import { type CallingRun, prepareCall } from './prepare-call.ts'
import { hasTooManyLists, readOp } from '../rules/parse-op.ts'
import type { JournalError } from '@windlass/shared/wire/journal.ts'
import { refusal, type JournalCommand } from '../rules/journal-command.ts'

/** Returns undefined for what cannot be read. It looks up workflows and judges values, so nothing is locked yet. */
export async function readCommand(
  deps: PrepareDeps,
  from: CallingRun,
  text: string,
): Promise<JournalCommand | undefined> {
  const op = readOp(text)
  if (op?.op !== 'open') return op && { op }
  if (op.ask.for === 'child') {
    if (hasTooManyLists(op.ask.inputText)) return { op, refused: tooManyLists() }
    return { op, ...(await prepareCall(deps, from, op.entry, op.ask)) }
  }
  const trouble = op.ask.for === 'input' ? await questionTrouble(deps, from, op.ask) : undefined
  if (trouble?.isSpent) return { op, spent: trouble.message }
  return trouble ? { op, refused: refusal(trouble.message, { path: 'schema' }) } : { op }
}

function tooManyLists(): JournalError {
  const limit = MOST_MARKS_OF_INPUT.opened
  const message =
    `input: has more than ${limit} lists and objects, which is the most that a run is given. ` +
    'Hand it over in parts, or where it can be read'
  return refusal(`${message}.`, { path: 'input', limit })
}
