import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, type WorkflowId, type WorkflowRef } from '@windlass/shared/ids.ts'
import type { GAP_REASONS } from '@windlass/shared/model/schedule.ts'
import type { LongCall } from '../actor.ts'
import { noCredential } from '../stay.ts'
import { findVersion } from '../engine/commit/may-start.ts'
import { type PrepareDeps, prepareRun, starterOf, type TriggerAsk } from '../engine/commit/trigger.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import type { Content, ScheduleRow } from './row.ts'

export async function workflowOf(deps: PrepareDeps, orgId: OrgId, workflow: WorkflowRef) {
  const { version } = await findVersion(deps, orgId, { workflow })
  return { id: version.workflowId, slug: version.slug }
}

type Started = Pick<Content, 'environment' | 'environmentId' | 'input'> & { workflowId: WorkflowId }

/** What a schedule asks for when it starts a run. */
export function askOf(row: Started, trigger: TriggerAsk['trigger'], delayMs = 0): TriggerAsk {
  return {
    workflow: row.workflowId,
    inputText: row.input,
    environment: row.environmentId ?? row.environment,
    tags: [],
    priority: 0,
    delayMs,
    trigger,
  }
}

/** Throws where runs of the schedule would be refused for what it gives them; nothing else is in its hands. */
export async function assertInputFits(deps: PrepareDeps, call: LongCall, row: Started): Promise<void> {
  try {
    await prepareRun(deps, { ...starterOf(call), actor: null }, askOf(row, { kind: 'schedule' }))
  } catch (error) {
    if (!(error instanceof Fault) || error.code === 'UNAUTHENTICATED') throw error
    const reason = reasonOf(error)
    if (reason === 'ENVIRONMENT_GONE' || reason === 'INPUT_INVALID') throw error
    if (!isRefusal(error)) throw error
  }
}

/** Why a tick starts no run. */
export interface Refusal {
  reason: (typeof GAP_REASONS)[number]
  message: string
  /** Since when the workflow is disabled. */
  since?: number
}

/** The run that a schedule starts, or why it starts none. Throws what may be otherwise in a moment. */
export async function startedBy(
  deps: PrepareDeps,
  row: ScheduleRow,
  ask: TriggerAsk,
): Promise<{ run: NewRun } | { refusal: Refusal }> {
  // Of those made over the API, whoever made it pays for its runs.
  const actor = row.source === 'api' ? row.createdBy : null
  try {
    return { run: (await prepareRun(deps, { orgId: row.orgId, actor, ...noCredential }, ask)).run }
  } catch (error) {
    if (!(error instanceof Fault) || !isRefusal(error)) throw error
    return { refusal: refusalOf(error, row) }
  }
}

/**
 * The same for several ticks. What they ask for differs in nothing but the tick, so it is judged once: a hundred of
 * them would not find room in the line of what is judged for their org.
 */
export async function startedByEach(
  deps: PrepareDeps,
  row: ScheduleRow,
  asks: readonly TriggerAsk[],
): Promise<({ run: NewRun } | { refusal: Refusal })[]> {
  const [first] = asks
  if (!first) return []
  const started = await startedBy(deps, row, first)
  if ('refusal' in started) return asks.map(() => started)
  const { run } = started
  return asks.map(({ trigger, delayMs = 0 }) => ({
    run: { ...run, id: newId('run'), tick: trigger.tick ?? null, delayMs },
  }))
}

/** Not that somebody else has the floor just now. */
const isRefusal = ({ status }: Fault) => status < 500 && status !== 429

function refusalOf(fault: Fault, row: ScheduleRow): Refusal {
  const reason = reasonOf(fault)
  const since = fault.detail?.['disabledAt']
  if (reason === 'WORKFLOW_DISABLED' && typeof since === 'number') return { reason, message: fault.message, since }
  if (reason !== 'ENVIRONMENT_GONE' || row.environment === null) return { reason, message: fault.message }
  const change =
    row.source === 'api' ? 'give the schedule another one' : 'create it again, or name another in the descriptor'
  return { reason, message: `The environment \`${row.environment}\` is gone: ${change}.` }
}

function reasonOf({ code, detail }: Fault): Refusal['reason'] {
  if (code === 'WORKFLOW_DISABLED') return 'WORKFLOW_DISABLED'
  if (code === 'NOT_FOUND') return 'WORKFLOW_DELETED'
  if (detail?.path === 'environment') return 'ENVIRONMENT_GONE'
  if (detail?.['pool'] !== undefined) return 'POOL_GONE'
  return code === 'VALIDATION_FAILED' || code === 'PAYLOAD_TOO_LARGE' ? 'INPUT_INVALID' : 'REFUSED'
}
