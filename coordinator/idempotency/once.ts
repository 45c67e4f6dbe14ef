import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import { canonicalHash } from '../canonical-hash.ts'
import type { Db, Tx } from '../db/client.ts'
import { type Claim, cleanKeys, findKey, type FirstRequest, takeKey } from './store.ts'

export type { Claim }
export { pointKey } from './store.ts'

interface KeyedRequest {
  orgId: OrgId
  workflowId: WorkflowId
  key: string
  /** Everything that makes the request what it is. Equal values are equal in whatever order their fields stand. */
  request: unknown
}

export async function claimOf({ request, ...where }: KeyedRequest): Promise<Claim> {
  return { ...where, requestHash: (await canonicalHash(request)).digest() }
}

/** Takes the key for a run, in the transaction that makes the run and before anything else is written there. */
export type TakeKey = (tx: Tx, runId: RunId) => Promise<void>

interface Once<T> {
  /** Answers what the first request of the key has made, as it is now. */
  first: (runId: RunId) => Promise<T>
  /** Makes what is asked for. Key and run are committed together: neither is there without the other. */
  make: (take: TakeKey) => Promise<T>
}

/**
 * Does at most once what is asked for: whoever asks the same under the same key within 24 hours is answered what the
 * first request has made. Throws IDEMPOTENCY_CONFLICT for another request under the key.
 */
export async function once<T>(deps: { db: Db }, claim: Claim, { first, make }: Once<T>): Promise<T> {
  // Looked at before anything is checked: what was accepted once stays accepted, also when it would be refused by now.
  const found = await findKey(deps.db, claim)
  if (found) return first(same(claim, found))
  try {
    return await make(async (tx, runId) => {
      const taken = await takeKey(tx, claim, runId)
      if (taken) throw new KeyTaken(taken)
    })
  } catch (error) {
    if (!(error instanceof KeyTaken)) throw error
    return first(same(claim, error.by))
  }
}

/** Another request took the key meanwhile. Thrown to undo what was written with it. */
class KeyTaken extends Error {
  readonly by: FirstRequest

  constructor(by: FirstRequest) {
    super('this key was taken by another request')
    this.by = by
  }
}

function same({ requestHash }: Claim, found: FirstRequest): RunId {
  if (requestHash.equals(found.requestHash)) return found.runId
  const run = found.runId
  const began = `This idempotency key started the run ${run} with another request.`
  const message = `${began} Send that request again, or take another key for this one.`
  throw new Fault('IDEMPOTENCY_CONFLICT', { path: 'idempotencyKey', run }, message)
}

/** Keys that nobody can meet any more. */
export async function cleanIdempotencyKeys(deps: { db: Db }): Promise<void> {
  await cleanKeys(deps.db)
}
