import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { canonicalHash } from '../canonical-hash.ts'
import type { Db, Tx } from '../db/client.ts'
import { type Claim, cleanKeys, findKey, type FirstRequest, type MadeId, takeKey } from './store.ts'

export type { Claim }
export { pointKey } from './store.ts'

interface KeyedRequest {
  orgId: OrgId
  scope: string
  key: string
  /** Everything that makes the request what it is. Equal values are equal in whatever order their fields stand. */
  request: unknown
}

export async function claimOf({ request, ...where }: KeyedRequest): Promise<Claim> {
  return { ...where, requestHash: (await canonicalHash(request, where.orgId)).digest() }
}

/** Takes the key for what is made, in the transaction that makes it and before anything else is written there. */
export type TakeKey = (tx: Tx, madeId: MadeId) => Promise<void>

interface Once<Id, T> {
  /** Answers what the first request of the key has made, as it is now. */
  first: (madeId: Id) => Promise<T>
  /** Makes what is asked for. The key is committed together with it: neither is there without the other. */
  make: (take?: TakeKey) => Promise<T>
}

/**
 * Does at most once what is asked for: whoever asks the same under the same key within 24 hours is answered what the
 * first request has made. Throws IDEMPOTENCY_CONFLICT for another request under the key. Without a claim each request
 * counts.
 */
export async function once<Id extends MadeId, T>(
  deps: { db: Db },
  claim: Claim | undefined,
  { first, make }: Once<Id, T>,
): Promise<T> {
  if (!claim) return make()
  // Looked at before anything is checked: what was accepted once stays accepted, also when it would be refused by now.
  // For that reason it is looked at again after a refusal, as the first request may have been accepted meanwhile.
  const found = await findKey(deps.db, claim)
  if (found) return first(same(claim, found) as Id)
  try {
    return await make(async (tx, madeId) => {
      const taken = await takeKey(tx, claim, madeId)
      if (taken) throw new KeyTaken(taken)
    })
  } catch (error) {
    const by = error instanceof KeyTaken ? error.by : isRefusal(error) && (await findKey(deps.db, claim))
    if (!by) throw error
    return first(same(claim, by) as Id)
  }
}

/** What says nothing about the request needs no second look, and a database that is away could not give one. */
const isRefusal = (error: unknown) =>
  error instanceof Fault && !['UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL'].includes(error.code)

/** Another request took the key meanwhile. Thrown to undo what was written with it. */
class KeyTaken extends Error {
  readonly by: FirstRequest

  constructor(by: FirstRequest) {
    super('this key was taken by another request')
    this.by = by
  }
}

/** Nouns, and how a request makes them. */
const MADE: Readonly<Record<string, readonly [noun: string, verb: string]>> = {
  run: ['run', 'started'],
  dlv: ['delivery', 'made'],
  sch: ['schedule', 'made'],
}

function same({ requestHash }: Claim, found: FirstRequest): MadeId {
  const { madeId } = found
  if (requestHash.equals(found.requestHash)) return madeId
  const [noun, verb] = MADE[madeId.split('_', 1)[0]!]!
  const before = `This idempotency key ${verb} the ${noun} ${madeId} with another request.`
  const message = `${before} Send that request again, or take another key for this one.`
  throw new Fault('IDEMPOTENCY_CONFLICT', { path: 'idempotencyKey', [noun]: madeId }, message)
}

/** Keys that nobody can meet any more. */
export async function cleanIdempotencyKeys(deps: { db: Db }): Promise<void> {
  await cleanKeys(deps.db)
}
