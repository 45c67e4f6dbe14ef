import { Fault } from '@windlass/shared/errors.ts'
import { type DeliveryId, newId, type OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Revocable } from '../actor.ts'
import type { Tx } from '../db/client.ts'
import type { GroupCommit } from '../db/group-commit.ts'
import type { Partitions } from '../db/partitions.ts'
import type { Wait } from '../db/waiting.ts'
import { tellOfNew } from '../engine/commit/trigger.ts'
import { ringRun } from '../events/ring.ts'
import type { TakeKey } from '../idempotency/once.ts'
import type { ObjectStore } from '../objects/store.ts'
import type { Known } from '../limits/bytes-in-flight.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import { isLongAgo } from '../stay.ts'
import { commitDeliveries, type Committed, keysOf, type NewDelivery } from './commit.ts'
import { eventOf, idOf, isIdOpen } from './rules/events.ts'
import { handshakeOf } from './rules/handshake.ts'
import { storable } from './rules/headers.ts'
import type { Once } from './rules/signature.ts'
import { type FormOf, type Payload, readPayload } from './rules/payload.ts'
import type { InboundSource } from './sources.ts'
import { type Decided, MOST_STARTED, noneOf, startsOf, stillStarting } from './starts.ts'
import { LIGHT_BYTES, type Wanting, wantingOf, workflowsOf } from './wanting.ts'

export type TakeDeps = Parameters<typeof startsOf>[0] &
  Parameters<typeof tellOfNew>[0] & {
    log: Log
    objects: ObjectStore
    deliveries: GroupCommit<NewDelivery, Committed>
    partitions: Partitions
    turns: { orgDeliveries: OrgTurns }
  }

/** A delivery that is known to be its source's. */
export interface Verified {
  source: InboundSource
  method: string
  query: string
  /** Without credentials. */
  headers: Record<string, string>
  body: Buffer
  /** When it first came in: a replay takes it over for its program. */
  receivedAt: Date
  attempts: number
  /** Its signature, where it stands for this one delivery. */
  once?: Once | undefined
  /** Counts its body. Left out: nobody does. */
  known?: Known
  /** Set for a replay, which is no repetition. Others are repetitions of it. */
  replay?: Replay
}

interface Replay {
  of: DeliveryId
  /** Not set where an admin said so of one that does not verify: what its source sends is no repetition of that. */
  isVerified: boolean
  audit: NonNullable<NewDelivery['audit']>
  assert(decided: Decided): void
  /** Set where it was asked for under an idempotency key. */
  take: TakeKey | undefined
}

export interface Taken {
  id: DeliveryId
  committed: Committed
  /** What the provider asks before it sends anything. */
  handshake?: { challenge?: string }
}

/** A pattern of a descriptor has as many. */
const MOST_EVENT_CHARS = 200
/** Larger payloads lie in the object store. */
const IN_ROW_BYTES = 128 * 1024

/**
 * Writes a delivery with all that it starts, and tells of that. `lookAgain` finds its source as it is after a wait, and
 * throws where that takes the delivery no more.
 */
export async function take(
  deps: TakeDeps,
  verified: Verified,
  lookAgain: () => Promise<InboundSource>,
): Promise<Taken> {
  const since = performance.now()
  const { source, body, known } = verified
  const wanting = await lookAtWanting(deps, verified)
  const stay = async () => void (await lookAgain())
  const turn = <T>(act: () => Promise<T>) => inTurn(deps, { orgId: source.orgId, stay, known }, act)
  const starts = Math.min(MOST_STARTED, Math.max(1, wanting.workflows))
  if (starts * body.length + wanting.weight <= LIGHT_BYTES)
    return takeNow(deps, { ...verified, wanting, since, inTurn: turn }, lookAgain)
  // What is wanted of it may be something else when its turn has come.
  const { wanted: _, ...rest } = wanting
  return turn(() => takeNow(deps, { ...verified, wanting: rest, since, inTurn: (long) => long() }, lookAgain))
}

/** The look is one of many, and takes long where a thousand workflows name the connection: what is large gives way. */
async function lookAtWanting(deps: TakeDeps, { source, body, known }: Verified): Promise<Wanting> {
  const look = wantingOf(deps, source)
  if (!known || body.length <= LIGHT_BYTES) return look
  const gone = Promise.withResolvers<never>()
  const begin = giveWay(known)(gone.reject)
  try {
    return await Promise.race([look, gone.promise])
  } finally {
    begin()
  }
}

/** For a body that only waits: what it leaves when others need the room. */
function giveWay(known: Known): Wait {
  return (giveUp) => known.wait(() => giveUp(new Fault('UNAVAILABLE', {}, GAVE_WAY)))
}

type InTurn = Revocable & { orgId: OrgId; known: Known | undefined }

/** Its body gives way to those of others for as long as it waits. */
async function inTurn<T>(deps: TakeDeps, asked: InTurn, act: () => Promise<T>): Promise<T> {
  const { orgId, known, ...revocable } = asked
  const gone = new AbortController()
  const begin = known && giveWay(known)((reason) => gone.abort(reason))
  try {
    return await deps.turns.orgDeliveries.run(orgId, { ...revocable, gone: gone.signal }, () => {
      begin?.()
      return act()
    })
  } finally {
    begin?.()
  }
}

const GAVE_WAY = 'This delivery waited for others of its org while others needed the room; send it again.'

async function takeNow(
  deps: TakeDeps,
  verified: Verified & { wanting: Wanting; since: number; inTurn: Parameters<typeof startsOf>[1]['inTurn'] },
  lookAgain: () => Promise<InboundSource>,
): Promise<Taken> {
  const { source, wanting, since, headers, body, replay } = verified
  const write = (item: NewDelivery & { id: DeliveryId }) => commit(deps, item, verified)
  const isLarge = body.length > deps.config.maxInputBytes
  const payload = isLarge ? NOT_READ : readFrom(source, body, headers['content-type'])
  const value = 'invalid' in payload ? undefined : payload.value
  const event = namedEvent(eventOf(source.about, headers, value))
  const handshake = handshakeOf(source.about.kind, value)
  if (handshake) {
    const row = await rowOf(deps, verified, event)
    const committed = await write({ ...row, whole: HANDSHAKE, decided: [], starts: [] })
    return { id: row.id, committed, handshake }
  }
  const id = idOf(source.about, headers, value)
  const found = isLarge
    ? noneOf(await workflowsOf(deps, source, wanting), 'too_large', tooLarge(body.length, deps.config.maxInputBytes))
    : await startsOf(deps, { ...verified, event, id, payload, mayMerge: !replay })
  // Before its payload is stored, where nobody would remove it.
  replay?.assert(found)
  const row = await rowOf(deps, verified, event)
  const { runs, decided } = isLongAgo(since) ? await stillStarting(deps, await lookAgain(), found) : found
  replay?.assert({ runs, decided })
  const knownBy = { id, once: verified.once, ...(isIdOpen(source.about) && { body }) }
  const keys = replay && !replay.isVerified ? [] : keysOf(source.id, knownBy)
  const committed = await write({ ...row, decided, starts: runs.map((run) => ({ run, keys })) })
  probe('delivery.committed', { delivery: row.id, outcome: committed.outcome })
  const made = new Set(committed.matches.flatMap(({ outcome, runId }) => (outcome === 'triggered' ? [runId] : [])))
  for (const run of runs) if (made.has(run.id)) tellOfNew(deps, run)
  for (const run of committed.merged) ringRun(deps, run)
  return { id: row.id, committed }
}

/**
 * One with a key commits alone: where another has the key, nothing but this one is undone. All others give way while
 * they wait for those of their org, and no more once their commit has begun.
 */
async function commit(
  deps: TakeDeps,
  item: NewDelivery & { id: DeliveryId },
  { known, replay }: Pick<Verified, 'known' | 'replay'>,
): Promise<Committed> {
  const take = replay?.take
  if (!take) return deps.deliveries.add(item, known && giveWay(known))
  const first = (tx: Tx) => take(tx, item.id)
  const [committed] = await deps.partitions.atHand(() => commitDeliveries(deps.db, [item], { first }))
  return committed!
}

/** As it is stored, matched and handed on. */
function namedEvent(event: string | null): string | null {
  return event === null ? null : storable(event, MOST_EVENT_CHARS)
}

const NOT_READ: Payload = { invalid: '' }
const HANDSHAKE = { outcome: 'handshake', reason: 'The provider asked whether somebody listens here.' } as const

const tooLarge = (bytes: number, most: number) =>
  `The payload has ${bytes} bytes; a run takes ${most}. It is kept whole, and nothing was started.`

/** Writes a verified delivery that starts nothing, whole as any other: it may be replayed. */
export async function note(
  deps: TakeDeps,
  verified: Verified,
  whole: NonNullable<NewDelivery['whole']>,
): Promise<void> {
  const { source, headers, body } = verified
  const payload = body.length > deps.config.maxInputBytes ? NOT_READ : readFrom(source, body, headers['content-type'])
  const event = namedEvent(eventOf(source.about, headers, 'invalid' in payload ? undefined : payload.value))
  await deps.deliveries.add({ ...(await rowOf(deps, verified, event)), whole, decided: [], starts: [] })
}

function readFrom({ about }: InboundSource, body: Buffer, contentType: string | undefined): Payload {
  const form: FormOf = about.kind === 'github' || about.kind === 'slack' ? about.kind : 'any'
  const payload = readPayload(body, contentType, form)
  return about.kind === 'slack' && !('invalid' in payload) ? withoutToken(payload.value) : payload
}

/** Slack still sends the token along by which deliveries were verified before they were signed. */
function withoutToken(value: unknown): Payload {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { value, text: JSON.stringify(value) }
  const { token: _, ...rest } = value as Record<string, unknown>
  return { value: rest, text: JSON.stringify(rest) }
}

type Row = Omit<NewDelivery, 'decided' | 'starts' | 'whole'> & { id: DeliveryId }

/** The object first: a row whose payload is missing could not be replayed. */
async function rowOf(deps: TakeDeps, verified: Verified, event: string | null): Promise<Row> {
  const { source, headers, body, replay } = verified
  const id = newId('dlv')
  // Its own, not that of the content: whoever deletes one delivery need not ask whether another has the same payload.
  const key = body.length > IN_ROW_BYTES ? `deliveries/${id}` : null
  if (key !== null) await keep(deps, key, body)
  return {
    ...sourceFields(source),
    id,
    receivedAt: source.now,
    event,
    replayOf: replay?.of ?? null,
    attempts: verified.attempts,
    method: verified.method,
    query: verified.query,
    headers: JSON.stringify(headers),
    contentType: headers['content-type'] ?? null,
    payload: key === null ? body : null,
    payloadKey: key,
    payloadBytes: body.length,
    isCut: false,
    ...(replay && { audit: { ...replay.audit, change: { ...replay.audit.change, after: { delivery: id } } } }),
  }
}

async function keep({ objects, log }: TakeDeps, key: string, body: Buffer): Promise<void> {
  try {
    await objects.put(key, body)
  } catch (error) {
    log.warn('delivery.payload.not-stored', { key, bytes: body.length, error })
    throw new Fault('UNAVAILABLE', {}, 'The payload could not be stored; send it again in a minute.')
  }
}

export function sourceFields({ id, orgId, name }: InboundSource) {
  return { orgId, sourceId: id, sourceName: name }
}
