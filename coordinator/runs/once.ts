import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { LongCall } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { createOrMerge } from '../engine/commit/debounce.ts'
import { findVersion } from '../engine/commit/may-start.ts'
import { prepareRun, starterOf, type TriggerAsk } from '../engine/commit/trigger.ts'
import { presentRun } from '../engine/rules/run.ts'
import { type Claim, claimOf, once, pointKey, type TakeKey } from '../idempotency/once.ts'
import { answerTo, inTransaction, type StartDeps, type Started } from './start.ts'
import { find } from './store.ts'

/** Queues a run at most once: whoever asks the same under the same key is answered the first run as it is now. */
export async function triggerOnce(deps: StartDeps, call: LongCall, ask: TriggerAsk, key: string): Promise<Started> {
  const { caller } = call
  const { orgId } = caller
  const { version } = await findVersion(deps, orgId, ask)
  const claim = await claimOf({ orgId, scope: version.workflowId, key, request: requestOf(ask) })
  return once<RunId, Started>(deps, claim, {
    first: (id) => firstRun(deps, orgId, id),
    make: async (take) => {
      const prepared = await prepareRun(deps, starterOf(call), { ...ask, mayMerge: true })
      const created = await inTransaction(deps, async (tx) => {
        await take?.(tx, prepared.run.id)
        const created = await createOrMerge(tx, prepared.run)
        // From now on the key is that of the run which the call was merged into.
        if ('into' in created) await pointKey(tx, claim, created.into.id)
        return created
      })
      return answerTo(deps, caller, prepared, created)
    },
  })
}

/** Everything that makes a trigger what it is. Hashes of it are stored for 24 hours, so it has to stay as it is. */
function requestOf(ask: TriggerAsk) {
  const { input = null, tags, priority, version, delayMs = 0 } = ask
  // Null and left out are one request. Kept hashes are of what left it out.
  const environment = ask.environment ?? undefined
  return { input, environment, tags, priority, version, delayMs }
}

/** Starts a run, with a claim at most once. */
export async function startOnce(
  deps: { db: Db },
  { orgId, claim }: { orgId: OrgId; claim: Claim | undefined },
  start: (take?: TakeKey) => Promise<Run>,
): Promise<Started> {
  return once<RunId, Started>(deps, claim, {
    first: (id) => firstRun(deps, orgId, id),
    make: async (take) => ({ run: await start(take), isNew: true }),
  })
}

async function firstRun(deps: { db: Db }, orgId: OrgId, id: RunId): Promise<Started> {
  const row = await find(deps.db, orgId, id)
  if (!row) throw new Error(`run ${id} of an idempotency key is missing`)
  return { run: presentRun(row), isNew: false }
}
