import { Fault } from '@windlass/shared/errors.ts'
import type { InputId } from '@windlass/shared/ids.ts'
import type { InputStatus, PendingInput } from '@windlass/shared/model/input.ts'
import type { Config } from '../config.ts'
import type { Judge } from '../judging/judge.ts'
import type { LongCall } from '../actor.ts'
import { isLongAgo } from '../stay.ts'
import { answerQuestion } from '../engine/commit/answer.ts'
import type { MoveDeps } from '../engine/commit/move-runs.ts'
import { answerText } from '../engine/commit/judge-answer.ts'
import { needInput, presentInput } from './read.ts'
import type { InputRow } from './store.ts'

type RespondDeps = { judge: Judge; config: Config } & MoveDeps

/** The first answer counts. Question, journal and whatever lets the run go on are written together, or nothing is. */
export async function respondToInput(
  deps: RespondDeps,
  call: LongCall,
  id: InputId,
  answer: unknown,
): Promise<PendingInput> {
  const { caller } = call
  const asked = await needInput(deps, caller, id)
  if (asked.status !== 'open') throw closedBy(asked)
  const since = performance.now()
  const text = await answerText(deps, caller.orgId, asked.schema, answer)
  if (isLongAgo(since)) await call.stay()
  const isFirst = await answerQuestion(deps, asked, { id, text, caller })
  // Somebody else, the clock or the end of the run was faster.
  if (!isFirst) throw closedBy(await needInput(deps, caller, id))
  return presentInput(await needInput(deps, caller, id))
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
