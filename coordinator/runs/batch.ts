import { Fault } from '@windlass/shared/errors.ts'
import { newId, type WorkflowRef } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf } from '@windlass/shared/ops/op.ts'
import type { LongCall } from '../actor.ts'
import { mayStart } from '../engine/commit/may-start.ts'
import { prepareRun, starterOf, type TriggerAsk } from '../engine/commit/trigger.ts'
import { keyOf } from '../idempotency/key.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { Pace } from '../pace.ts'
import { faultForUnforeseen } from '../unforeseen.ts'
import { triggerOnce } from './once.ts'
import { startPrepared, type StartDeps } from './start.ts'

/** What became of one item. */
type Result =
  | { run: Run; merged?: number }
  | { error: { code: string; message: string; detail?: Record<string, unknown> } }

interface Item {
  ask: TriggerAsk
  idempotencyKey: string | undefined
}

/**
 * Items under way at once. The statements of triggers take turns by org, so that a thousand items hold up others no
 * longer than these.
 */
const PIECE = 64

export type BatchDeps = StartDeps & { log: Log; turns: { orgBatches: OrgTurns }; batchPace: Pace }

/** Starts runs in the order of the items. Throws what is wrong with all of them. */
export async function startBatch(
  given: BatchDeps,
  call: LongCall,
  { workflow, items: asked }: InputOf<typeof ops.runs.batch>,
): Promise<Result[]> {
  const { orgId } = call.caller
  await mayStart(given, orgId, { workflow })
  const items = asked.map(({ idempotencyKey, ...fields }): Item => {
    return { ask: { ...fields, workflow, trigger: { kind: 'api' } }, idempotencyKey }
  })
  const deps = { ...given, ...(await lookUp(given, call, { workflow, items })) }
  const results: Result[] = []
  for (let at = 0; at < items.length; at += PIECE) {
    await deps.batchPace.next(orgId)
    results.push(...(await startPiece(deps, call, items.slice(at, at + PIECE))))
  }
  return results
}

interface Named {
  workflow: WorkflowRef
  items: readonly Item[]
}

/** Each name once, in a turn of the org: a thousand items may name as many environments and versions. */
async function lookUp(
  deps: BatchDeps,
  call: LongCall,
  { workflow, items }: Named,
): Promise<Pick<BatchDeps, 'targets' | 'environments'>> {
  const { orgId } = call.caller
  const versions = distinct(items.map(({ ask }) => ask.version))
  const environments = distinct(items.map(({ ask }) => ask.environment))
  if (versions.length + environments.length === 0) return deps
  return deps.turns.orgBatches.run(orgId, call, async () => ({
    targets: await deps.targets.among(orgId, workflow, versions),
    environments: await deps.environments.among(orgId, environments),
  }))
}

const distinct = <T>(all: readonly (T | null | undefined)[]): T[] => [
  ...new Set(all.filter((one) => one !== null && one !== undefined)),
]

type Prepared = Awaited<ReturnType<typeof prepareRun>>

/** Inputs are judged side by side; then the runs are queued in order. */
async function startPiece(deps: BatchDeps, call: LongCall, items: readonly Item[]): Promise<Result[]> {
  const who = starterOf(call)
  try {
    await readVersions(deps, call, items)
  } catch (error) {
    const refusal = { error: refusalOf(error, { log: deps.log, call }) }
    return items.map(() => refusal)
  }
  const prepared = await Promise.all(
    items.map(async ({ ask, idempotencyKey }) =>
      // Under a key it may have been accepted before, whatever it is worth now.
      idempotencyKey === undefined ? settled(prepareRun(deps, who, { ...ask, mayMerge: true })) : undefined,
    ),
  )
  const results: Promise<Result>[] = []
  for (const [i, item] of items.entries()) {
    const result = startItem(deps, call, item, prepared[i])
    // What may be merged, or answered an earlier run, follows upon what came before it.
    const isSingle = prepared[i] === undefined || (prepared[i].value?.run.debounce ?? null) !== null
    if (isSingle) await result
    results.push(result)
  }
  return Promise.all(results)
}

/** Of several they are read one by one, in a turn of the org; then each item finds its own remembered. */
async function readVersions(deps: BatchDeps, call: LongCall, items: readonly Item[]): Promise<void> {
  const { orgId } = call.caller
  const { workflow } = items[0]!.ask
  const versions = distinct(items.map(({ ask }) => ask.version))
  if (versions.length < 2) return
  await deps.turns.orgBatches.run(orgId, call, async () => {
    for (const version of versions) await deps.targets.resolve(orgId, workflow, version)
  })
}

async function startItem(
  deps: BatchDeps,
  call: LongCall,
  { ask, idempotencyKey }: Item,
  prepared: Settled<Prepared> | undefined,
): Promise<Result> {
  try {
    // Inputs may take minutes to judge. What was started before the credential was lost has its result.
    await call.stay()
    if (prepared === undefined) {
      const key = keyOf(idempotencyKey, undefined)!
      return answerOf(await deps.turns.orgCalls.run(call.caller.orgId, call, () => triggerOnce(deps, call, ask, key)))
    }
    if (!prepared.value) throw prepared.error
    // It may have been judged long before the others of its piece.
    await mayStart(deps, call.caller.orgId, { workflow: prepared.value.run.workflowId })
    // Ids are given in the order of the items, in which they are queued.
    prepared.value.run.id = newId('run')
    return answerOf(await startPrepared(deps, call, prepared.value))
  } catch (error) {
    return { error: refusalOf(error, { log: deps.log, call, input: { ...ask, idempotencyKey } }) }
  }
}

const answerOf = ({ run, merged }: { run: Run; merged?: number }) => ({ run, ...(merged !== undefined && { merged }) })

type Settled<T> = { value: T; error?: undefined } | { value?: undefined; error: unknown }

async function settled<T>(promise: Promise<T>): Promise<Settled<T>> {
  try {
    return { value: await promise }
  } catch (error) {
    return { error }
  }
}

/**
 * An item that fails must not hide which of the others have been started. It is told what the same call by itself would
 * be: whoever reads the code sends again what may still be started.
 */
function refusalOf(error: unknown, refused: Refused): Extract<Result, { error: unknown }>['error'] {
  const fault = error instanceof Fault ? error : unforeseen(error, refused)
  return { code: fault.code, message: fault.message, ...(fault.detail && { detail: fault.detail }) }
}

interface Refused {
  log: Log
  call: LongCall
  input?: unknown
}

const unforeseen = (error: unknown, { log, call, input }: Refused): Fault =>
  faultForUnforeseen(error, { log, input, op: 'runs.batch', requestId: call.caller.requestId })
