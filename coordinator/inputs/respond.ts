import { Fault } from '@windlass/shared/errors.ts'
import type { InputId } from '@windlass/shared/ids.ts'
import type { InputStatus, PendingInput } from '@windlass/shared/model/input.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Tx } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { announce, type AnnounceDeps } from '../runs/announce.ts'
import { complete, lockRuns } from '../runs/moves.ts'
import type { Moving } from '../runs/row.ts'
import { saveMoves } from '../runs/save-moves.ts'
import { answerText } from './judge.ts'
import { needInput, presentInput } from './read.ts'
import type { InputRow } from './store.ts'
import { answer } from './store-questions.ts'

type RespondDeps = Pick<Deps, 'db' | 'judge' | 'config'> & AnnounceDeps

/** The first answer counts. Question, journal and whatever lets the run go on are written together, or nothing is. */
export async function respondToInput(
  deps: RespondDeps,
  caller: Acting,
  id: InputId,
  answer: unknown,
): Promise<PendingInput> {
  const asked = await needInput(deps, caller, id)
  if (asked.status !== 'open') throw closedBy(asked)
  const text = await answerText(deps, caller.orgId, asked.schema, answer)
  const run = await deps.db.begin((tx) => write(tx, asked, { id, text, caller }))
  // Somebody else, the clock or the end of the run was faster.
  if (!run) throw closedBy(await needInput(deps, caller, id))
  announce(deps, [run])
  return presentInput(await needInput(deps, caller, id))
}

async function write(
  tx: Tx,
  asked: InputRow,
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

const HOW_CLOSED: Record<Exclude<InputStatus, 'open'>, (row: InputRow) => string> = {
  answered: (row) => `The question was answered by ${row.answeredBy}; the first answer counts.`,
  timed_out: () => 'The question has timed out; the run has gone on without an answer.',
  closed: (row) => `The run ${row.runId} does not ask any more: it has ended or started again.`,
}

function closedBy(row: InputRow): Fault {
  const { status } = row
  // It cannot open again, so what was found closed under the lock is closed now.
  if (status === 'open') throw new Error(`the question ${row.id} is open and took no answer`)
  const { answeredBy } = row
  const at = row.closedAt?.getTime() ?? null
  const detail = { input: row.id, status, answeredBy, answeredAt: status === 'answered' ? at : null, closedAt: at }
  return new Fault('INPUT_CLOSED', detail, HOW_CLOSED[status](row))
}
