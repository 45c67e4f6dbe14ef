import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import type { LongCall } from '../actor.ts'
import { canonicalHash } from '../canonical-hash.ts'
import { type Claim, cleanKeys, findKey, type FirstRequest, pointKey, takeKey } from './store-idempotency.ts'
import { presentRun } from '../engine/rules/run.ts'
import { find } from './store.ts'
import { createOrMerge } from '../engine/commit/debounce.ts'
import { findVersion } from '../engine/commit/may-start.ts'
import { prepareRun, starterOf, type TriggerAsk } from '../engine/commit/trigger.ts'
import { answerTo, inTransaction, type StartDeps, type Started } from './start.ts'

/** Room for every id and name; more is no key but a payload. */
const KEY_CHARACTERS = 255

/** The key of body or header. Given in both it has to be the same. */
export function keyOf(inBody: string | undefined, inHeader: string | undefined): string | undefined {
  if (inBody !== undefined && inHeader !== undefined && inBody !== inHeader)
    throw invalid('is given in the body and, with another value, as the header `Idempotency-Key`: leave one out')
  // Above ASCII a header has no agreed encoding: two keys might arrive as one.
  if (inHeader !== undefined && !/^[\x20-\x7e]*$/.test(inHeader))
    throw invalid('as a header it takes ASCII characters only; send this one as `idempotencyKey` in the body')
  const key = inBody ?? inHeader
  if (key === undefined) return undefined
  if (key === '' || key.length > KEY_CHARACTERS) throw invalid(`must have 1 to ${KEY_CHARACTERS} characters`)
  if (key.includes('\0') || !key.isWellFormed())
    throw invalid('holds U+0000 or half of a surrogate pair, which cannot be stored; leave it out')
  return key
}

function invalid(message: string): Fault {
  return new Fault('VALIDATION_FAILED', { path: 'idempotencyKey' }, `idempotencyKey: ${message}.`)
}

/**
 * Queues a run at most once: whoever asks the same under the same key within 24 hours is answered the first run as it stands now.
 * Key and run are committed together, so a key never stands without its run, nor the other way round.
 */
export async function triggerOnce(deps: StartDeps, call: LongCall, ask: TriggerAsk, key: string): Promise<Started> {
  const { caller } = call
  const { version } = await findVersion(deps, caller.orgId, ask)
  const claim = { orgId: caller.orgId, workflowId: version.workflowId, key, requestHash: await hashOf(ask) }
  // Looked at before the input is: what was accepted once stays accepted, also when the schema is another by now.
  const found = await findKey(deps.db, claim)
  if (found) return { run: await firstRun(deps, claim, found), isNew: false }
  const prepared = await prepareRun(deps, starterOf(call), { ...ask, mayMerge: true })
  const { run } = prepared
  const taken = await inTransaction(deps, async (tx) => {
    const first = await takeKey(tx, claim, run.id)
    if (first) return { first }
    const created = await createOrMerge(tx, run)
    // From now on the key is that of the run which the call was merged into.
    if ('into' in created) await pointKey(tx, claim, created.into.id)
    return { created }
  })
  if (taken.first) return { run: await firstRun(deps, claim, taken.first), isNew: false }
  return answerTo(deps, caller, prepared, taken.created)
}

/** Everything that makes the request what it is. Equal values are equal in whatever order their fields stand. */
async function hashOf(ask: TriggerAsk): Promise<Buffer> {
  const { input = null, tags, priority, version, delayMs = 0 } = ask
  // Null and left out are one request. Kept hashes are of what left it out.
  const environment = ask.environment ?? undefined
  return (await canonicalHash({ input, environment, tags, priority, version, delayMs })).digest()
}

async function firstRun(deps: { db: Db }, claim: Claim, found: FirstRequest): Promise<Run> {
  if (!claim.requestHash.equals(found.requestHash)) throw conflict(found.runId)
  const row = await find(deps.db, claim.orgId, found.runId)
  if (!row) throw new Error(`run ${found.runId} of an idempotency key is missing`)
  return presentRun(row)
}

function conflict(run: RunId): Fault {
  const message = `This idempotency key started the run ${run} with another request. Send that request again, or take another key for this one.`
  return new Fault('IDEMPOTENCY_CONFLICT', { path: 'idempotencyKey', run }, message)
}

/** Keys that nobody can meet any more. */
export async function cleanIdempotencyKeys(deps: { db: Db }): Promise<void> {
  await cleanKeys(deps.db)
}
