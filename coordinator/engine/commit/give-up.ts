import type { Log } from '@windlass/shared/log.ts'
import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import type { Db } from '../../db/client.ts'
import { createPerMinute } from '../../limits/per-minute.ts'
import { createSample } from '../../limits/sample.ts'
import { answerToStale, isHeldBy, lastOf } from './apply.ts'
import type { AgentBatch, Applied, ReadBatch } from '../rules/batch.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import { fail, finish } from '../rules/transitions.ts'
import { noteRefusal } from '../store/placements.ts'

/** An agent may send nothing else. What is refused, said or not, must not hide what is given up. */
const lines = { refused: createSample(), unusable: createSample() }
/** On a full disk the agents of all runs come again every few seconds: each run is named once a minute. */
const refusals = createPerMinute(1)
/** `why` may have to say it again soon after something was taken. */
const notes = createPerMinute(12)

/**
 * Says which run it is whose agent has to come again: its log has a gap until then, and nobody else knows why. The log
 * of the coordinator has the cause, `why` the fact.
 */
export function noteRefused(deps: { db: Db; log: Log }, batch: AgentBatch, error: unknown): void {
  const { run: runId, runnerId, epoch, first } = batch
  if (notes.take(runId))
    noteRefusal(deps.db, { runId, runnerId, epoch }).catch((failure: unknown) =>
      deps.log.warn('run.refusal.unnoted', { runId, error: failure }),
    )
  // What was said in this minute takes nothing of the share of its agent's others.
  if (!refusals.take(runId)) return
  const facts = lines.refused(runnerId)
  if (facts) deps.log.warn('run.entries.refused', { runId, runnerId, first, last: lastOf(batch), error, ...facts })
  else refusals.giveBack(runId)
}

/**
 * Ends a run whose entries cannot be stored. Its agent would send them again with each connection, fail again, and
 * bring nothing of its other runs home: better one run lost, and said so.
 */
export async function giveUpOn(deps: { log: Log } & MoveDeps, batch: ReadBatch, error: unknown): Promise<Applied> {
  const { run: runId, runnerId, epoch, first } = batch
  const last = lastOf(batch)
  const { applied, isGivenUp } = await moveRuns(deps, { ids: [runId] }, async (_, runs) => {
    const run = runs.get(runId)
    if (!isHeldBy(run, batch)) return { answer: { applied: answerToStale(run, batch), isGivenUp: false }, moved: [] }
    const at = deps.databaseClock.now()
    // Counted as taken, so that the same entries from another connection are acknowledged.
    run.seq = Math.max(run.seq, last)
    // Somebody wants it gone, and gone it is.
    if (run.status === 'cancelling') finish(run, 'cancelled', at, { error: unusable(first, last) })
    else fail(run, at, unusable(first, last))
    return { answer: { applied: answerTo(batch), isGivenUp: true }, moved: [run] }
  })
  // Not before: where the database takes this neither, it is asked for again with each connection of the agent.
  const facts = isGivenUp && lines.unusable(runnerId)
  if (facts) deps.log.error('run.entries.unusable', { runId, runnerId, epoch, first, last, error, ...facts })
  return applied
}

/** After an end the agent has nothing more to do. A process that still works is to be killed. */
function answerTo(batch: AgentBatch): Applied {
  const hasEnded = batch.entries.some(([kind]) => kind === 'end')
  return hasEnded ? { kind: 'ack', seq: lastOf(batch) } : { kind: 'stale' }
}

function unusable(first: number, last: number): RunError {
  const code: RunErrorCode = 'INTERNAL'
  const message = `${RUN_ERRORS[code]} Look for \`run.entries.unusable\` with this run's id in the coordinator's log.`
  return { code, message, detail: { first, last } }
}
