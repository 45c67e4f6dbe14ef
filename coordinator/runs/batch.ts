import { Fault } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf } from '@windlass/shared/ops/op.ts'
import type { LongCall } from '../actor.ts'
import { isConnectionLoss, lacksPartition } from '../db/client.ts'
import { mayStart } from '../engine/commit/may-start.ts'
import { prepareRun, starterOf, type TriggerAsk } from '../engine/commit/trigger.ts'
import { keyOf } from '../idempotency/key.ts'
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

/** Starts runs in the order of the items. Throws what is wrong with all of them. */
export async function startBatch(
  deps: StartDeps & { log: Log },
  call: LongCall,
  { workflow, items: given }: InputOf<typeof ops.runs.batch>,
): Promise<Result[]> {
  await mayStart(deps, call.caller.orgId, { workflow })
  const items = given.map(({ idempotencyKey, ...fields }): Item => {
    return { ask: { ...fields, workflow, trigger: { kind: 'api' } }, idempotencyKey }
  })
  const results: Result[] = []
  for (let at = 0; at < items.length; at += PIECE)
    results.push(...(await startPiece(deps, call, items.slice(at, at + PIECE))))
  return results
}

type Prepared = Awaited<ReturnType<typeof prepareRun>>

/** Inputs are judged side by side; then the runs are queued in order. */
async function startPiece(deps: StartDeps & { log: Log }, call: LongCall, items: readonly Item[]): Promise<Result[]> {
  const who = starterOf(call)
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

async function startItem(
  deps: StartDeps & { log: Log },
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
    return { error: refusalOf(error, deps.log) }
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

/** An item that fails must not hide which of the others have been started. */
function refusalOf(error: unknown, log: Log): Extract<Result, { error: unknown }>['error'] {
  const fault = error instanceof Fault ? error : faultOf(error, log)
  return { code: fault.code, message: fault.message, ...(fault.detail && { detail: fault.detail }) }
}

function faultOf(error: unknown, log: Log): Fault {
  if (isConnectionLoss(error) || lacksPartition(error)) return new Fault('UNAVAILABLE')
  log.error('batch.item.failed', { error })
  return new Fault('INTERNAL')
}
