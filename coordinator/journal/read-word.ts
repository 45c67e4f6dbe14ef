import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { questionTrouble } from '../inputs/judge.ts'
import type { PrepareDeps } from '../runs/trigger.ts'
import { prepareCall, refusal } from './children.ts'
import { readOp } from './read-op.ts'
import type { Word } from './word.ts'

/** Returns undefined for what cannot be read. It looks up workflows and judges values, so nothing is locked yet. */
export async function readWord(
  deps: PrepareDeps,
  from: { orgId: OrgId; runId: RunId },
  text: string,
): Promise<Word | undefined> {
  const op = readOp(text)
  if (op?.op !== 'open') return op && { op }
  if (op.ask.for === 'child') return { op, ...(await prepareCall(deps, from, op.entry, op.ask)) }
  const trouble = op.ask.for === 'input' ? await questionTrouble(deps, from, op.ask) : undefined
  if (trouble?.isSpent) return { op, spent: trouble.message }
  return trouble ? { op, refused: refusal(trouble.message, { path: 'schema' }) } : { op }
}
