import { Fault } from '@windlass/shared/errors.ts'
import type { InputId, RunId } from '@windlass/shared/ids.ts'
import type { Acting } from '../../actor.ts'
import { record } from '../../audit/record.ts'
import type { Tx } from '../../db/client.ts'
import { lockRuns } from './lock.ts'
import { complete } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import { saveMoves } from './save.ts'
import { answer } from '../store/questions.ts'

/** Undefined: the question is not open any more. */
export async function answerQuestion(
  tx: Tx,
  asked: { runId: RunId; n: number },
  given: { id: InputId; text: string; caller: Acting },
): Promise<Moving | undefined> {
  const run = (await lockRuns(tx, [asked.runId])).get(asked.runId)!
  if (run.status === 'cancelling')
    throw new Fault(
      'INPUT_CLOSED',
      { input: given.id, status: 'open', run: run.id, runStatus: run.status },
      `The run ${run.id} is being cancelled; its questions take no answer any more.`,
    )
  const { id, text, caller } = given
  if (!(await answer(tx, { id, text, by: caller.id }))) return undefined
  complete(run, { n: asked.n, state: 'done', result: text })
  await saveMoves(tx, [run])
  // Without the answer: it may hold what only the program is to know.
  const after = { status: 'answered', answeredBy: caller.id, run: run.id }
  await record(tx, caller, {
    action: 'inputs.respond',
    target: { type: 'input', id },
    before: { status: 'open' },
    after,
  })
  return run
}
