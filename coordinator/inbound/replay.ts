import { Fault } from '@windlass/shared/errors.ts'
import type { DeliveryId } from '@windlass/shared/ids.ts'
import type { Delivery } from '@windlass/shared/model/delivery.ts'
import { hasRole } from '@windlass/shared/scopes.ts'
import type { LongCall } from '../actor.ts'
import { openOwned } from '../environments/owned-secrets.ts'
import type { SecretKeys } from '../environments/secret-keys.ts'
import { claimOf, once, type TakeKey } from '../idempotency/once.ts'
import type { BytesInFlight, Known } from '../limits/bytes-in-flight.ts'
import { checkBody } from './check-body.ts'
import { assertWhole, getDelivery, needDelivery, streamOf } from './deliveries.ts'
import type { WholeDeliveryRow } from './row.ts'
import { beginCheck, type Verdict } from './rules/signature.ts'
import { findSource, type InboundSource } from './sources.ts'
import type { Decided } from './starts.ts'
import { firstReceivedAt } from './store-deliveries.ts'
import { take, type TakeDeps, type Verified } from './take.ts'

type Deps = TakeDeps & { secretKeys: SecretKeys; deliveryBodies: BytesInFlight }

export interface ReplayAsk {
  delivery: DeliveryId
  /** Although it does not verify. */
  unverified: boolean
  /** Under which the source is reached. */
  base: string
  /** Idempotency key of the request. */
  key: string | undefined
}

/** What a caller is answered: a new delivery, or the first one of the key. */
interface Replayed {
  delivery: Delivery
  isNew: boolean
}

/**
 * Takes a delivery once more, byte for byte, by what is deployed now. It is no repetition: it starts runs again. Where
 * none had come of it, its sender may try again, and is told of these. The same request under its key does so once; a
 * key counts for the webhook or connection where the delivery came in.
 */
export async function replayDelivery(deps: Deps, call: LongCall, ask: ReplayAsk): Promise<Replayed> {
  const by = call.caller
  if (ask.unverified && !(by.kind === 'session' && hasRole(by.role, 'admin')))
    throw new Fault(
      'FORBIDDEN',
      { path: 'unverified', needs: { session: true, role: 'admin' } },
      'Only a session of an admin replays a delivery that does not verify.',
    )
  const row = await needDelivery(deps, by, ask.delivery)
  const { key, delivery, unverified } = ask
  const request = { kind: 'deliveries.replay', delivery, unverified }
  const { orgId, sourceId: scope } = row
  const claim = key === undefined ? undefined : await claimOf({ orgId, scope, key, request })
  return once<DeliveryId, Replayed>(deps, claim, {
    first: async (id) => ({ delivery: await getDelivery(deps, by, id), isNew: false }),
    make: async (take) => ({ delivery: await replayNow(deps, call, { ...ask, row, take }), isNew: true }),
  })
}

type RowAsk = ReplayAsk & { row: WholeDeliveryRow; take: TakeKey | undefined }

async function replayNow(deps: Deps, call: LongCall, ask: RowAsk): Promise<Delivery> {
  const { row } = ask
  const by = call.caller
  assertWhole(row)
  // A payload is in memory here as well.
  const holding = deps.deliveryBodies.hold(by.orgId)
  try {
    holding.countFor(by.orgId)
    holding.take(row.payloadBytes)
    return await getDelivery(deps, by, await takeAgain(deps, call, { ...ask, known: holding }))
  } finally {
    holding.release()
  }
}

async function takeAgain(deps: Deps, call: LongCall, ask: RowAsk & { known: Known }): Promise<DeliveryId> {
  const { row, known, take: takeKey } = ask
  const headers = JSON.parse(row.headers) as Record<string, string>
  const body = row.payload ?? Buffer.concat(await (await streamOf(deps.objects, row)).toArray())
  const firstAt = row.replayOf === null ? undefined : await firstReceivedAt(deps.db, row.orgId, row.id)
  const receivedAt = firstAt ?? row.receivedAt
  const isToBeVerified = row.outcome === 'unverified' && !ask.unverified
  const judge = (source: InboundSource) => verifyAgain(deps, { source, headers, body, receivedAt, ...ask })
  const find = async () => {
    const source = await sourceOf(deps, row)
    if (isToBeVerified) assertVerified(row, source, await judge(source))
    return source
  }
  const source = await sourceOf(deps, row)
  const verdict = await (isToBeVerified ? judge(source) : unlessUnavailable(judge(source)))
  if (isToBeVerified) assertVerified(row, source, verdict)
  const change = {
    action: 'deliveries.replay',
    target: { type: 'delivery', id: row.id, name: row.sourceName },
    before: { outcome: row.outcome, unverified: ask.unverified },
  }
  // What a secret of before has signed, or a bearer has shown, was verified when it came.
  const wasVerified = row.replayOf === null && row.outcome !== 'unverified'
  const delivery: Verified = {
    source,
    headers,
    body,
    method: row.method,
    query: row.query,
    receivedAt,
    attempts: row.attempts,
    once: verdict.isVerified ? verdict.once : undefined,
    known,
    replay: {
      of: ask.delivery,
      isVerified: verdict.isVerified || wasVerified,
      audit: { by: call.caller, change },
      assert: assertOneLeft,
      take: takeKey,
    },
  }
  const lookAgain = async () => {
    await call.stay()
    return find()
  }
  return (await take(deps, delivery, lookAgain)).id
}

async function sourceOf(deps: Deps, row: WholeDeliveryRow): Promise<InboundSource> {
  const source = await findSource(deps, row.sourceId)
  if (!source || source.orgId !== row.orgId)
    throw new Fault('NOT_FOUND', { source: row.sourceId }, `\`${row.sourceName}\`, where it came in, is deleted.`)
  return source
}

/** None is left that could start: all that it means are disabled. */
function assertOneLeft({ runs, decided }: Decided): void {
  const off = decided.find(({ outcome }) => outcome === 'disabled')
  if (runs.length > 0 || !off) return
  throw new Fault('WORKFLOW_DISABLED', { workflow: off.workflowId }, off.reason ?? undefined)
}

interface Again extends ReplayAsk {
  row: WholeDeliveryRow
  source: InboundSource
  headers: Record<string, string>
  body: Buffer
  receivedAt: Date
}

/** By the secrets of today: perhaps the right one was set since. Its age is what it was when it came. */
async function verifyAgain(deps: Deps, { row, source, headers, body, base, receivedAt }: Again): Promise<Verdict> {
  const secrets = await openOwned(deps, source.id)
  const path = source.kind === 'webhook' ? 'hooks' : 'inbound'
  const url = `${base}/v1/${path}/${source.id}${row.query && `?${row.query}`}`
  const head = { method: row.method, url, headers }
  const check = beginCheck(source.auth, { head, secrets, at: receivedAt.getTime() })
  return checkBody(check, body, secrets.length)
}

/** What was verified when it came, or is replayed in spite of that, needs no secrets: their key may be missing. */
async function unlessUnavailable(judging: Promise<Verdict>): Promise<Verdict> {
  try {
    return await judging
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'SECRETS_UNAVAILABLE') throw error
    return { isVerified: false, reason: error.message }
  }
}

function assertVerified(row: WholeDeliveryRow, source: InboundSource, verdict: Verdict): void {
  if (verdict.isVerified) return
  const why = source.auth.kind === 'bearer' ? 'The secret that it showed is not kept.' : verdict.reason
  const wayOut = 'A session of an admin may send `unverified: true`.'
  const message = `The delivery was not verified, and is not by the secrets of today: ${why} ${wayOut}`
  throw new Fault('DELIVERY_UNVERIFIED', { delivery: row.id }, message)
}
