import { Fault } from '@windlass/shared/errors.ts'
import { newId, type RunId, type WorkflowRef } from '@windlass/shared/ids.ts'
import type { Run, TriggerKind } from '@windlass/shared/model/run.ts'
import type { Caller } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import type { Target } from '../workflows/targets.ts'
import { presentRun } from './row.ts'
import * as store from './store.ts'

/** 1 MiB as JSON. */
const INPUT_BYTES = 1024 * 1024

export interface TriggerAsk {
  workflow: WorkflowRef
  version?: number | undefined
  input?: unknown
  /** Left out: that of the descriptor. Null: none. */
  environment?: string | null | undefined
  tags: string[]
  priority: number
  trigger: { kind: TriggerKind; id?: string }
  retryOf?: RunId
}

type TriggerDeps = Pick<Deps, 'targets' | 'triggers' | 'dispatchers' | 'bell'>

/** Queues a run. It is answered when run, queue row and first event are committed. */
export async function triggerRun(deps: TriggerDeps, caller: Caller, ask: TriggerAsk): Promise<Run> {
  assertStorable(ask.tags)
  const target = await targetOf(deps, caller, ask)
  const run = newRun(caller, ask, target, inputText(ask, target))
  const createdAt = await deps.triggers.add(run)
  deps.dispatchers.poke(run.poolId)
  deps.bell.ring('pool', run.poolId)
  return present(caller, run, target, createdAt)
}

/** PostgreSQL's text holds no U+0000, and UTF-8 no half of a surrogate pair. */
function assertStorable(tags: readonly string[]): void {
  const index = tags.findIndex((tag) => tag.includes('\0') || !tag.isWellFormed())
  if (index === -1) return
  throw new Fault(
    'VALIDATION_FAILED',
    { path: `tags[${index}]` },
    `tags[${index}]: holds U+0000 or half of a surrogate pair, which cannot be stored; leave it out.`,
  )
}

async function targetOf(deps: TriggerDeps, caller: Caller, ask: TriggerAsk): Promise<Target> {
  const found = await deps.targets.resolve(caller.orgId, ask.workflow, ask.version)
  if (!found)
    throw new Fault(
      'NOT_FOUND',
      { workflow: ask.workflow, ...(ask.version ? { version: ask.version } : {}) },
      unknownWorkflow(ask),
    )
  if (found.pool) return { version: found.version, pool: found.pool }
  const { pool } = found.version.descriptor
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'workflow', pool },
    `The workflow runs in the pool \`${pool}\`, which does not exist. Create it, or deploy the workflow with another \`pool\`.`,
  )
}

function unknownWorkflow(ask: TriggerAsk): string {
  const which = ask.version ? `no version ${ask.version} of the workflow` : 'no workflow'
  return `There is ${which} \`${ask.workflow}\` in this org.`
}

function inputText(ask: TriggerAsk, target: Target): string {
  const input = ask.input === undefined ? null : ask.input
  const text = JSON.stringify(input)
  const bytes = Buffer.byteLength(text)
  if (bytes > INPUT_BYTES)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'input', bytes, limitBytes: INPUT_BYTES },
      `The input has ${bytes} bytes as JSON; a run takes ${INPUT_BYTES}.`,
    )
  const invalid = target.version.validateInput(input)
  if (invalid)
    throw new Fault(
      'VALIDATION_FAILED',
      { path: invalid.path },
      `The input does not fit what \`run\` declares. ${invalid.path}: ${invalid.message}`,
    )
  return text
}

function newRun(caller: Caller, ask: TriggerAsk, target: Target, input: string): store.NewRun {
  return {
    id: newId('run'),
    orgId: caller.orgId,
    workflowId: target.version.workflowId,
    versionId: target.version.id,
    poolId: target.pool.id,
    triggerKind: ask.trigger.kind,
    triggerId: ask.trigger.id ?? null,
    triggerActor: caller.id,
    environment: ask.environment === undefined ? target.version.descriptor.environment : ask.environment,
    tags: ask.tags,
    priority: ask.priority,
    retryOf: ask.retryOf ?? null,
    input,
  }
}

/** The row as it has just been written; reading it back would double the work of a trigger. */
function present(caller: Caller, run: store.NewRun, target: Target, createdAt: Date): Run {
  return presentRun({
    ...run,
    org: caller.org,
    workflowSlug: target.version.slug,
    version: target.version.version,
    poolName: target.pool.name,
    status: 'queued',
    attempt: 1,
    epoch: 0,
    cursor: 1,
    runnerId: null,
    runnerName: null,
    parentRunId: null,
    rootRunId: null,
    error: null,
    createdAt,
    queuedAt: createdAt,
    claimedAt: null,
    startedAt: null,
    finishedAt: null,
    computeMs: '0',
    tokensInput: '0',
    tokensOutput: '0',
    tokensCached: '0',
    tokensReasoning: '0',
    costMicros: '0',
  })
}

/** Writes queued runs for all who trigger at this moment; resolves with their times of creation. */
export async function commitTriggers(db: Db, runs: store.NewRun[]): Promise<Date[]> {
  const ids = runs.map((run) => run.id)
  const created = await store.insertQueued(db, runs)
  // The statement ran before, and only its answer was lost.
  if (created.size < runs.length) for (const [id, at] of await store.createdAt(db, ids)) created.set(id, at)
  return ids.map((id) => created.get(id)!)
}
