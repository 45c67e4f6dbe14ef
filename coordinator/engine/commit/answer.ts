import { Fault } from '@windlass/shared/errors.ts'
import type { InputId, RunId } from '@windlass/shared/ids.ts'
import type { Acting } from '../../actor.ts'
import { record } from '../../audit/record.ts'
import type { Tx } from '../../db/client.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import { complete } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import { answer } from '../store/questions.ts'

/** The first answer counts. False: the question is not open any more. */
export function answerQuestion(
  deps: MoveDeps,
  asked: { runId: RunId; n: number },
  given: { id: InputId; text: string; caller: Acting },
): Promise<boolean> {
  return moveRuns(deps, { ids: [asked.runId], ending: [] }, async (tx, runs) => {
    const run = runs.get(asked.runId)!
    const isFirst = await takeAnswer(tx, run, asked.n, given)
    return { moved: isFirst ? [run] : [], answer: isFirst }
  })
}

async function takeAnswer(
  tx: Tx,
  run: Moving,
  n: number,
  given: { id: InputId; text: string; caller: Acting },
): Promise<boolean> {
  const why = whyStopped(run)
  if (why !== undefined)
    throw new Fault(
      'INPUT_CLOSED',
      { input: given.id, status: 'open', run: run.id, runStatus: run.status },
      `The run ${run.id} ${why}; its questions take no answer any more.`,
    )
  const { id, text, caller } = given
  if (!(await answer(tx, { id, text, by: caller.id }))) return false
  complete(run, { n, state: 'done', result: text })
  // Without the answer: it may hold what only the program is to know.
  const after = { status: 'answered', answeredBy: caller.id, run: run.id }
  await record(tx, caller, {
    action: 'inputs.respond',
    target: { type: 'input', id },
    before: { status: 'open' },
    after,
  })
  return true
}

/** A run that is being stopped goes on with no answer. */
function whyStopped({ status, timedOut }: Moving): string | undefined {
  if (status === 'cancelling') return 'is being cancelled'
  return timedOut ? 'is being stopped, as its time is used up' : undefined
}
