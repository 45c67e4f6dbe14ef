import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, type RunId, type WorkflowRef } from '@windlass/shared/ids.ts'
import type { Run, TriggerKind } from '@windlass/shared/model/run.ts'
import type { Bell } from '../../events/bell.ts'
import { type RingDeps, ringOrg } from '../../events/ring.ts'
import type { Dispatchers } from '../../dispatch/dispatcher.ts'
import type { EnvironmentNames } from '../../environments/names.ts'
import type { GroupCommit } from '../../db/group-commit.ts'
import type { Judge, Payer } from '../../judging/judge.ts'
import type { Target, Targets, Version } from '../../workflows/targets.ts'
import type { Timers } from './clock.ts'
import type { Caller, LongCall, Revocable } from '../../actor.ts'
import { isLongAgo } from '../../stay.ts'
import { rebalance } from './admit.ts'
import { mayStart, mayStillStart } from './may-start.ts'
import { groupsOf, keyBy } from './group.ts'
import type { Config } from '../../config.ts'
import type { Db, Tx } from '../../db/client.ts'
import { needsText } from '../../matching/needs.ts'
import { throttleKey } from '../rules/holds.ts'
import { presentRun } from '../rules/run.ts'
import { createdAt, entersInMs, insertQueued, isDue, type NewRun, type Tick } from '../store/new-runs.ts'
import { throttleNew } from './throttle.ts'

export interface TriggerAsk {
  workflow: WorkflowRef
  version?: number | undefined
  input?: unknown
  /** JSON text in place of `input`, where nobody has parsed it: it may hold a hundred thousand values. */
  inputText?: string
  /** Left out or null: the base of the org. */
  environment?: string | null | undefined
  tags: string[]
  priority: number
  delayMs?: number
  trigger: { kind: TriggerKind; id?: string; tick?: Tick | null }
  /** The caller can be answered an earlier run, into which this call is merged where the descriptor debounces. */
  mayMerge?: boolean
  retryOf?: RunId
  /** The run that calls this one, and the number of the call in its journal. */
  parent?: { runId: RunId; entry: number; rootRunId: RunId; depth: number }
}

export type TriggerDeps = PrepareDeps &
  RingDeps & {
    triggers: GroupCommit<NewRun, Date>
    dispatchers: Dispatchers
    bell: Bell
    timers: Timers
  }

/** Queues a run with others of the moment. It is answered when run, queue row and first event are committed. */
export async function addRun(
  deps: TriggerDeps,
  caller: Caller,
  { run, target }: { run: NewRun; target: Target },
): Promise<Run> {
  const at = await deps.triggers.add(run)
  tellOfNew(deps, run)
  return presentNew(caller, run, target, at)
}

export type PrepareDeps = { targets: Targets; environments: EnvironmentNames; judge: Judge } & {
  config: Pick<Config, 'maxInputBytes'>
}

/** The caller or the org that starts a run, and the run that pays for what is judged where there is one. */
interface Starter extends Revocable {
  orgId: OrgId
  actor: string | null
  payer?: Payer
  /** It brings its runs one by one: none is refused because others of the org wait to be judged. */
  isPatient?: boolean
}

export const starterOf = (call: LongCall): Starter => ({
  orgId: call.caller.orgId,
  actor: call.caller.id,
  stay: () => call.stay(),
})

/**
 * A run that may be inserted: workflow and environment are found, the input fits. Throws a `Fault` for what is wrong
 * with it.
 */
export async function prepareRun(
  deps: PrepareDeps,
  who: Starter,
  ask: TriggerAsk,
): Promise<{ run: NewRun; target: Target }> {
  assertStorable(ask.tags)
  const since = performance.now()
  const target = await targetOf(deps, who.orgId, ask)
  const named = ask.environment ?? null
  const environment = named === null ? null : await deps.environments.need(who.orgId, named)
  const input = await inputText(deps, who, ask, target)
  const value = () => (ask.inputText === undefined ? ask.input : (JSON.parse(ask.inputText) as unknown))
  const limits = await limitsOf(target.version, { ...ask, environment }, value)
  // Inputs that are slow to judge stand in line with all else of their org that is judged.
  if (isLongAgo(since)) await mayStillStart(deps, who, target.version)
  return { run: newRun(who, { ...ask, environment }, target, { input, ...limits }), target }
}

type Limits = Pick<NewRun, 'concurrencyGroup' | 'throttle' | 'debounce'>

/** How the descriptor limits the load that its runs make. */
async function limitsOf(version: Version, ask: TriggerAsk, input: () => unknown): Promise<Limits> {
  const { id, descriptor } = version
  const { concurrency, throttle, debounce } = descriptor
  // A call with a delay of its own is for its time.
  const mayMerge = ask.mayMerge === true && !ask.delayMs
  return {
    concurrencyGroup: await groupsOf(version, concurrency, input),
    // A version with another rule begins anew: turns of a rule that was too tight may lie months ahead.
    throttle: throttle && {
      ...throttle,
      key: throttleKey(await keyBy(version, throttle.key, input), throttle),
    },
    debounce:
      debounce && mayMerge
        ? {
            ...debounce,
            // What another version would do, or with other variables, is something else.
            key: `${await keyBy(version, debounce.key, input)} ${id} ${ask.environment ?? ''}`,
          }
        : null,
  }
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

async function targetOf(deps: { targets: Targets }, orgId: OrgId, ask: TriggerAsk): Promise<Target> {
  const found = await mayStart(deps, orgId, ask)
  if (found.pool) return { version: found.version, pool: found.pool }
  const { pool } = found.version.descriptor
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'workflow', pool },
    `The workflow runs in the pool \`${pool}\`, which does not exist. Create it, or deploy the workflow with another \`pool\`.`,
  )
}

async function inputText(deps: PrepareDeps, who: Starter, ask: TriggerAsk, target: Target): Promise<string> {
  const input = ask.input === undefined ? null : ask.input
  const text = ask.inputText ?? JSON.stringify(input)
  const bytes = Buffer.byteLength(text)
  const limitBytes = deps.config.maxInputBytes
  // A retry takes over what was accepted once, whatever the limit is by now.
  if (bytes > limitBytes && !ask.retryOf)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'input', bytes, limitBytes },
      `The input has ${bytes} bytes as JSON; a run takes ${limitBytes}.`,
    )
  // What a run calls is checked at its expense, however many others it calls.
  const payer = who.payer && { ...who.payer, isPatient: true }
  const verdict = await deps.judge.judge(
    target.version.input,
    ask.inputText === undefined ? { text, parsed: input } : { text },
    { root: 'input', org: who.orgId, isPatient: who.isPatient ?? false, ...payer },
  )
  if (verdict.is === 'fits') return text
  const { path, message } = verdict.invalid
  const what = 'The input does not fit what `run` declares.'
  throw new Fault('VALIDATION_FAILED', { path }, `${what} ${path}: ${message}`)
}

function newRun(who: Starter, ask: TriggerAsk, target: Target, found: Limits & Pick<NewRun, 'input'>): NewRun {
  const { version, pool } = target
  const { descriptor, workflowId } = version
  return {
    id: newId('run'),
    orgId: who.orgId,
    workflowId,
    versionId: version.id,
    poolId: pool.id,
    triggerKind: ask.trigger.kind,
    triggerId: ask.trigger.id ?? null,
    triggerActor: who.actor,
    tick: ask.trigger.tick ?? null,
    environment: ask.environment ?? null,
    tags: ask.tags,
    priority: ask.priority,
    retryOf: ask.retryOf ?? null,
    parentRunId: ask.parent?.runId ?? null,
    parentEntry: ask.parent?.entry ?? null,
    rootRunId: ask.parent?.rootRunId ?? null,
    depth: ask.parent?.depth ?? 0,
    delayMs: found.debounce?.waitMs ?? ask.delayMs ?? 0,
    queueTimeoutMs: descriptor.queueTimeoutMs,
    wallTimeoutMs: descriptor.wallTimeoutMs,
    needs: needsText(descriptor),
    ...found,
  }
}

/** Tells those who wait for something new, after the commit. */
export function tellOfNew(
  deps: RingDeps & { dispatchers: Dispatchers; bell: Bell; timers: Timers },
  run: NewRun,
): void {
  ringOrg(deps, run.orgId)
  const entersMs = entersInMs(run)
  for (const ms of [run.wallTimeoutMs, run.queueTimeoutMs && entersMs + run.queueTimeoutMs])
    if (ms !== null) deps.timers.expect(ms)
  if (!isDue(run)) return deps.timers.expect(entersMs)
  deps.dispatchers.poke(run.poolId)
  deps.bell.ring('pool', run.poolId)
}

/** The row as it has just been written; reading it back would double the work of a trigger. */
export function presentNew(caller: Caller, run: NewRun, target: Target, at: Date): Run {
  return presentRun({
    ...run,
    tickHow: run.tick?.how ?? null,
    tickAt: run.tick ? new Date(run.tick.at) : null,
    tickLate: run.tick?.lateMs ?? null,
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
    error: null,
    blocked: null,
    suspendedAt: null,
    waits: null,
    isolation: null,
    lost: null,
    createdAt: at,
    budget: target.version.descriptor.budget,
    queuedAt: new Date(at.getTime() + entersInMs(run)),
    claimedAt: null,
    startedAt: null,
    finishedAt: null,
    deletedAt: null,
    computeMs: '0',
    tokensInput: '0',
    tokensOutput: '0',
    tokensCached: '0',
    tokensReasoning: '0',
    costMicros: '0',
  })
}

/** Writes queued runs for all who trigger at this moment; resolves with their times of creation. */
export async function commitTriggers(db: Db, runs: NewRun[]): Promise<Date[]> {
  const ids = runs.map((run) => run.id)
  const isLimited = runs.some(isLimitedRun)
  const created = isLimited ? await db.begin((tx) => createRuns(tx, runs)) : await insertQueued(db, runs)
  // The statement ran before, and only its answer was lost.
  if (created.size < runs.length) for (const [id, at] of await createdAt(db, ids)) created.set(id, at)
  return ids.map((id) => created.get(id)!)
}

/** Whether its creation waits for locks that others of its workflow hold. */
export const isLimitedRun = ({ concurrencyGroup, throttle }: NewRun) => concurrencyGroup !== null || throttle !== null

/** Creates runs, gives those that are throttled their turns, and lets in those whose groups have room. */
export async function createRuns(tx: Tx, runs: readonly NewRun[]): Promise<Map<string, Date>> {
  await throttleNew(tx, runs)
  const created = await insertQueued(tx, runs)
  await rebalance(tx, { entering: runs.filter((run) => isDue(run) && created.has(run.id)) })
  return created
}
