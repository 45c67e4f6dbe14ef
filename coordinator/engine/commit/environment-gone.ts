import type { Log } from '@windlass/shared/log.ts'
import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import { fail, finish } from '../rules/transitions.ts'
import type { Claimed } from '../store/claim.ts'

/**
 * Ends runs whose environment was deleted while they were being queued. With the variables of the org alone they might reach for the
 * wrong systems; so they are given to nobody.
 */
export async function endWithoutEnvironment(deps: { log: Log } & MoveDeps, claimed: readonly Claimed[]): Promise<void> {
  const ids = claimed.map((run) => run.runId)
  const ended = await moveRuns(deps, { ids }, async (_, runs) => {
    const still = claimed.flatMap(({ runId, epoch, environment }) => {
      const run = runs.get(runId)
      return run?.epoch === epoch && run.place !== null ? [{ run, environment }] : []
    })
    const now = deps.databaseClock.now()
    for (const { run, environment } of still) {
      // Somebody wants it gone, and gone it is.
      if (run.status === 'cancelling') finish(run, 'cancelled', now)
      else fail(run, now, gone(environment))
    }
    const ended = still.map(({ run }) => run)
    return { moved: ended, answer: ended }
  })
  for (const run of ended) deps.log.warn('run.environment.gone', { runId: run.id, environment: run.environment })
}

function gone(environment: string | null): RunError {
  const code: RunErrorCode = 'ENVIRONMENT_GONE'
  const message = `${RUN_ERRORS[code]} Create \`${environment}\` again and retry the run, or trigger it in another environment.`
  return { code, message, detail: { environment } }
}
