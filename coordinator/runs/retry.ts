import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Db } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import type { LongCall } from '../actor.ts'
import type { RunRow } from '../engine/rules/run.ts'
import * as store from './store.ts'
import { prepareRun, starterOf, type TriggerAsk, type TriggerDeps } from '../engine/commit/trigger.ts'
import { claimOf } from '../idempotency/once.ts'
import { startOnce } from './once.ts'
import { type Started, startRecorded } from './start.ts'

/** Starts a run with the input, environment, tags and priority of an earlier one, on the current version by default. */
export async function retryRun(
  deps: TriggerDeps & { db: Db; partitions: Partitions },
  call: LongCall,
  { run: runId, version, key }: { run: RunId; version?: number | undefined; key: string | undefined },
): Promise<Started> {
  const { caller } = call
  const { orgId } = caller
  const claim = key === undefined ? undefined : await claimOfRetry(deps, orgId, { run: runId, version, key })
  return startOnce(deps, { orgId, claim }, async (take) => {
    const ask = await retryAsk(deps, orgId, runId, version)
    const prepared = await prepareRun(deps, starterOf(call), ask)
    return startRecorded(deps, caller, prepared, {
      change: { action: 'runs.retry', target: { type: 'run', id: runId } },
      take,
    })
  })
}

/** The run may be deleted by now, as a request that is sent again needs no input. Throws NOT_FOUND. */
async function claimOfRetry(
  deps: { db: Db },
  orgId: OrgId,
  { key, ...asked }: { run: RunId; version: number | undefined; key: string },
) {
  const run = await store.find(deps.db, orgId, asked.run)
  if (!run) throw new Fault('NOT_FOUND', { run: asked.run })
  return claimOf({ orgId, scope: run.workflowId, key, request: { kind: 'runs.retry', ...asked } })
}

/** A retry stands for the same tick of a schedule as its run: the program asks for the day that it is about. */
function triggerAgain(run: RunRow): TriggerAsk['trigger'] {
  const { tickHow, tickAt, tickLate, triggerId } = run
  if (tickHow === null || tickAt === null || triggerId === null) return { kind: 'retry', id: run.id }
  return { kind: 'schedule', id: triggerId, tick: { how: tickHow, at: tickAt.getTime(), lateMs: tickLate ?? 0 } }
}

/** What a retry asks for. Throws NOT_FOUND. */
export async function retryAsk(
  deps: { db: Db },
  orgId: OrgId,
  runId: RunId,
  version: number | undefined,
): Promise<TriggerAsk> {
  // Throws where the run was deleted.
  const [run, inputText] = await Promise.all([store.find(deps.db, orgId, runId), store.inputOf(deps.db, orgId, runId)])
  if (!run || inputText === undefined) throw new Fault('NOT_FOUND', { run: runId })
  return {
    workflow: run.workflowId,
    version,
    inputText,
    environment: run.environment,
    tags: run.tags,
    priority: run.priority,
    trigger: triggerAgain(run),
    retryOf: runId,
  }
}
