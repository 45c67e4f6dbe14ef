import { Fault } from '@windlass/shared/errors.ts'
import type { WorkflowId } from '@windlass/shared/ids.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import { mayStart } from '../engine/commit/may-start.ts'
import { type PrepareDeps, prepareRun } from '../engine/commit/trigger.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import { type DecideDeps, decisionsOf } from './decisions.ts'
import type { MatchRow } from './row.ts'
import { fieldsOf } from './rules/fields.ts'
import { storable } from './rules/headers.ts'
import { disabledConnection } from './rules/outcome.ts'
import type { Payload } from './rules/payload.ts'
import type { InboundSource } from './sources.ts'
import { noCredential } from '../stay.ts'
import { createSlices } from '../slices.ts'
import { wantedOf, type Wanting, type WantingDeps, workflowsOf } from './wanting.ts'

/** What is known of a delivery once it is verified and read. */
interface Read {
  source: InboundSource
  wanting: Wanting
  event: string | null
  id: string | null
  payload: Payload
  /** Without credentials. */
  headers: Record<string, string>
  method: string
  query: string
  receivedAt: Date
  /** It may be merged into a run that waits for further calls. */
  mayMerge: boolean
  /** Does what is long in a turn of its org. */
  inTurn: <T>(act: () => Promise<T>) => Promise<T>
}

export interface Decided {
  runs: NewRun[]
  decided: MatchRow[]
}

const MOST_REASON_CHARS = 1000

type StartDeps = PrepareDeps & DecideDeps & WantingDeps

/** Which runs a delivery starts, and why others are not started. */
export async function startsOf(deps: StartDeps, read: Read): Promise<Decided> {
  const { source, wanting, payload } = read
  if (source.hook) return ofHook(deps, read, source.hook)
  const none = async (outcome: DeliveryOutcome, reason: string) =>
    noneOf(await workflowsOf(deps, source, wanting), outcome, reason)
  if (!source.isEnabled) return none('disabled', disabledConnection(source.name))
  if ('invalid' in payload) return none('invalid_input', payload.invalid)
  if (wanting.tooMuch !== undefined) return none('too_large', wanting.tooMuch)
  const wanted = await wantedOf(deps, source, wanting)
  const inputText = inputOfConnection(read, payload.text)
  const most = Math.max(1, Math.floor(MOST_STARTED_CHARS / inputText.length))
  const { event, inTurn } = read
  const decisions = await decisionsOf(deps, { orgId: source.orgId, wanted, event, payload: payload.value, inTurn })
  const found: (NewRun | MatchRow)[] = []
  const slices = createSlices(source.orgId)
  let starts = 0
  // In the order of their ids, which is that of their creation.
  for (const [workflowId, decision] of decisions) {
    await slices()
    if ('not' in decision) found.push(decision.not)
    else if (starts++ < Math.min(most, MOST_STARTED)) {
      const { environment: own } = decision.start
      const environment = own === null ? source.environment : { ref: own, name: own }
      found.push(await begin(deps, read, { workflowId, environment, inputText }))
    } else found.push({ workflowId, outcome: 'too_large', reason: MORE_THAN_FIT, runId: null })
  }
  return sorted(found)
}

/** All that a delivery starts is written in one transaction, as its answer says all of it. */
export const MOST_STARTED = 100
/** Of the inputs of all, which each have the whole payload. */
const MOST_STARTED_CHARS = 16 * 1024 * 1024
const MORE_THAN_FIT =
  'The delivery starts other workflows, and these are all that one may start: 100, with 16 MiB of inputs in all.'

async function ofHook(deps: StartDeps, read: Read, hook: NonNullable<InboundSource['hook']>): Promise<Decided> {
  const { source, payload } = read
  if ('invalid' in payload) return noneOf([hook], 'invalid_input', payload.invalid)
  const inputText = hook.input === 'body' ? payload.text : inputOfRequest(read, payload.text)
  const { environment } = source
  return sorted([await begin(deps, read, { workflowId: hook.workflowId, environment, inputText })])
}

type Workflows = readonly { workflowId: WorkflowId }[]

export function noneOf(workflows: Workflows, outcome: DeliveryOutcome, reason: string): Decided {
  return { runs: [], decided: workflows.map(({ workflowId }) => ({ workflowId, outcome, reason, runId: null })) }
}

function sorted(found: readonly (NewRun | MatchRow)[]): Decided {
  const runs = found.flatMap((one) => ('versionId' in one ? [one] : []))
  return { runs, decided: found.flatMap((one) => ('versionId' in one ? [] : [one])) }
}

interface Beginning {
  workflowId: WorkflowId
  environment: InboundSource['environment']
  inputText: string
}

async function begin(deps: StartDeps, { source, mayMerge }: Read, ask: Beginning): Promise<NewRun | MatchRow> {
  const { workflowId, environment, inputText } = ask
  const trigger = { kind: source.kind, id: source.id }
  const who = { orgId: source.orgId, actor: null, ...noCredential }
  try {
    const about = {
      workflow: workflowId,
      environment: environment?.ref ?? null,
      inputText,
      tags: [],
      priority: 0,
      trigger,
      mayMerge,
    }
    return (await prepareRun(deps, who, about)).run
  } catch (error) {
    return refusedBy(error, workflowId, environment)
  }
}

/** Throws what is no refusal of the workflow. */
function refusedBy(error: unknown, workflowId: WorkflowId, environment: InboundSource['environment']): MatchRow {
  const outcome = outcomeOf(error)
  if (outcome === undefined) throw error
  const reason = reasonOf(error as Fault, environment)
  return { workflowId, outcome, reason: storable(reason, MOST_REASON_CHARS), runId: null }
}

/** What still starts after a wait, in which the source may have been paused, and workflows disabled or deleted. */
export async function stillStarting(
  deps: StartDeps,
  source: InboundSource,
  { runs, decided }: Decided,
): Promise<Decided> {
  const look = async (run: NewRun) => {
    try {
      await mayStart(deps, source.orgId, { workflow: run.workflowId })
      return run
    } catch (error) {
      return refusedBy(error, run.workflowId, source.environment)
    }
  }
  const found = source.isEnabled
    ? sorted(await Promise.all(runs.map(look)))
    : noneOf(runs, 'disabled', disabledConnection(source.name))
  return { runs: found.runs, decided: [...found.decided, ...decided] }
}

/** Undefined: it is not the workflow that refuses, and the delivery has to be sent again. */
function outcomeOf(error: unknown): DeliveryOutcome | undefined {
  if (!(error instanceof Fault)) return undefined
  if (error.code === 'PAYLOAD_TOO_LARGE') return 'too_large'
  if (error.code === 'WORKFLOW_DISABLED' || error.code === 'NOT_FOUND') return 'disabled'
  if (error.code !== 'VALIDATION_FAILED') return undefined
  // Pool or environment is gone: nothing is wrong with the delivery, which can be replayed.
  return error.detail?.path === 'workflow' || error.detail?.path === 'environment' ? 'disabled' : 'invalid_input'
}

/** A gone environment is called by the name that people gave it. */
function reasonOf({ message, detail }: Fault, environment: InboundSource['environment']): string {
  if (detail?.path !== 'environment' || environment === null) return message
  return `The environment \`${environment.name}\` is gone.`
}

/** `payload` is JSON text, and stays as it was written: numbers of more digits than ours lose none. */
function inputOfConnection({ source, event, id, headers, receivedAt }: Read, payload: string): string {
  const [before, after] = [
    { connection: source.name, event, id },
    { headers, receivedAt: receivedAt.getTime() },
  ]
  return `${JSON.stringify(before).slice(0, -1)},"payload":${payload},${JSON.stringify(after).slice(1)}`
}

function inputOfRequest({ method, headers, query, receivedAt }: Read, body: string): string {
  const around = { method, headers, query: fieldsOf(Buffer.from(query)), receivedAt: receivedAt.getTime() }
  return `${JSON.stringify(around).slice(0, -1)},"body":${body}}`
}
