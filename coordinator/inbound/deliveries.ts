import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'
import { Fault } from '@windlass/shared/errors.ts'
import type { DeliveryId, OrgId } from '@windlass/shared/ids.ts'
import type { Delivery, DeliverySummary } from '@windlass/shared/model/delivery.ts'
import type { Caller } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import type { UnreadBytes } from '../limits/unread-bytes.ts'
import type { ObjectStore } from '../objects/store.ts'
import type { DeliveryRow, WholeDeliveryRow } from './row.ts'
import * as store from './store-deliveries.ts'
import { matchesById, matchSizes } from './store-matches.ts'

const SHOWN_BYTES = 16 * 1024

/** So many of the page as fit into one answer, and the one behind them. */
export async function listDeliveries(
  { db }: { db: Db },
  filter: store.DeliveryFilter,
): Promise<{ deliveries: DeliverySummary[]; fitting: number }> {
  const { limit } = filter
  const rows = await store.listDeliveries(db, { ...filter, limit: limit + 1 })
  const sizes = await matchSizes(
    db,
    rows.map(({ id }) => id),
  )
  const fitting = countFitting(sizes.slice(0, limit))
  const shown = rows.slice(0, fitting + 1)
  const matches = await matchesById(
    db,
    shown.map(({ id }) => id),
  )
  return { deliveries: shown.map((row) => summary({ ...row, matches: matches.get(row.id) ?? [] })), fitting }
}

type Deps = { db: Db; objects: ObjectStore }

export async function getDelivery(deps: Deps, caller: Caller, id: DeliveryId): Promise<Delivery> {
  return present(deps, await needDelivery(deps, caller, id))
}

export async function needDelivery({ db }: { db: Db }, caller: { orgId: OrgId }, id: DeliveryId) {
  const row = await store.findDelivery(db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { delivery: id })
  return row
}

/** Without its payload: only whether the org has it. */
export async function assertDelivery({ db }: { db: Db }, { orgId }: Caller, id: DeliveryId): Promise<void> {
  if (!(await store.isThere(db, orgId, id))) throw new Fault('NOT_FOUND', { delivery: id })
}

/** What a reader has here who takes nothing: buffers of the file and of the answer. */
const READER_BYTES = 256 * 1024

/** The bytes as they came, in pieces where they are many. */
export async function payloadOf(deps: Deps & { unread: UnreadBytes }, caller: Caller, id: DeliveryId) {
  const row = await needDelivery(deps, caller, id)
  assertWhole(row)
  const contentType = row.contentType ?? 'application/octet-stream'
  if (row.payload) return { contentType, bytes: row.payload }
  const cutting = new AbortController()
  const hold = () => deps.unread.hold(caller.orgId, READER_BYTES, () => cutting.abort())
  const pieces = piecesOf(() => streamOf(deps.objects, row), hold)
  return { contentType, pieces, length: row.payloadBytes, cut: cutting.signal }
}

/** The file is opened for the first piece: who asks for the head alone takes none, and nobody would close it. */
async function* piecesOf(
  open: () => Promise<Readable>,
  hold: () => () => void,
): AsyncGenerator<Uint8Array, void, void> {
  const release = hold()
  try {
    yield* (await open()) as AsyncIterable<Buffer>
  } finally {
    release()
  }
}

export function assertWhole({ id, isCut, payloadBytes }: WholeDeliveryRow): void {
  if (!isCut) return
  const message = `Of this payload of ${payloadBytes} bytes only the beginning was kept.`
  throw new Fault('PAYLOAD_NOT_KEPT', { delivery: id, bytes: payloadBytes }, message)
}

export async function streamOf(objects: ObjectStore, { id, payloadKey }: WholeDeliveryRow): Promise<Readable> {
  const stream = await objects.stream(payloadKey!)
  if (!stream) throw new Error(`the payload of ${id} is missing in the object store`)
  return stream
}

async function present(deps: Deps, row: WholeDeliveryRow): Promise<Delivery> {
  return {
    ...summary(row),
    method: row.method,
    query: row.query,
    headers: JSON.parse(row.headers) as Record<string, string>,
    payload: {
      contentType: row.contentType,
      bytes: row.payloadBytes,
      kept: row.isCut ? 'cut' : 'whole',
      text: textOf(await beginningOf(deps.objects, row)),
    },
  }
}

function summary(row: DeliveryRow): DeliverySummary {
  const { id, sourceId, sourceName, receivedAt, outcome, reason, event, matches, replayOf, attempts } = row
  return {
    id: id as DeliveryId,
    source: {
      kind: sourceId.startsWith('hook_') ? 'webhook' : 'connection',
      id: sourceId as DeliverySummary['source']['id'],
      name: sourceName,
    },
    receivedAt: receivedAt.getTime(),
    outcome,
    reason,
    event,
    matches: matches.map(({ workflowId, slug, ...rest }) => ({ workflow: { id: workflowId, slug }, ...rest })),
    replayOf: replayOf as DeliveryId | null,
    attempts,
  }
}

async function beginningOf(objects: ObjectStore, row: WholeDeliveryRow): Promise<Buffer> {
  if (row.payload) return row.payload.subarray(0, SHOWN_BYTES)
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of (await streamOf(objects, row)) as AsyncIterable<Buffer>) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes >= SHOWN_BYTES) break
  }
  return Buffer.concat(pieces).subarray(0, SHOWN_BYTES)
}

/** Null: it is no text. A character that was cut at the end is left out. */
function textOf(bytes: Buffer): string | null {
  for (let cut = 0; cut < 4; cut++) {
    const part = bytes.subarray(0, bytes.length - cut)
    if (isUtf8(part)) return part.toString('utf8')
  }
  return null
}
