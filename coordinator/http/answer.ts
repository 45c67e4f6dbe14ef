import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Fault } from '@windlass/shared/errors.ts'
import type { BytesAnswer } from '../api/call.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import type { OpenWork } from './open-work.ts'
import { closeWithBody, hasMuchToCome, sendAhead } from './unread.ts'
import type { Unsent } from './unsent.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'

/** A reader of bytes, or of any other answer that was made as a whole, who takes longer than this is cut. */
export const BYTES_DEADLINE_MS = 300_000

/** Where an answer goes, and under which id. */
export interface Outlet {
  readonly request: HttpRequest
  readonly response: HttpResponse
  readonly requestId: string
  readonly open: OpenWork
  readonly unsent: Unsent
  /** The org whose credential was shown. */
  orgId?: string
  /** Beside those of the answer itself: what the caller is to know of its limits. */
  headers: readonly (readonly [name: string, value: string])[]
  /** Whether the connection ends with this answer. */
  isLast?: boolean
  /** What a client without a credential is told, where that is more than the scheme. */
  challenge?: string
  /** What has been answered; bytes of a stream are not counted. */
  sent?: { status: number; bytes: number }
}

/**
 * A JSON answer. Of a GET it carries an ETag, and is left out when the client has it already; unless it is `fleeting`:
 * of the moment, perhaps secret, and for nobody to keep.
 */
export function sendJson(outlet: Outlet, status: number, text: string, fleeting = false): void {
  const { request } = outlet
  if (fleeting || status !== 200 || (request.method !== 'GET' && request.method !== 'HEAD')) {
    begin(outlet, status, 'no-store').header('content-type', JSON_TYPE)
    return end(outlet, text)
  }
  const etag = `"${hash('sha1', text, 'base64url')}"`
  const isKnown = matches(request.headers['if-none-match'], etag)
  const response = begin(outlet, isKnown ? 304 : 200, 'private, no-cache').header('etag', etag)
  if (isKnown) return end(outlet)
  response.header('content-type', JSON_TYPE)
  end(outlet, text)
}

export function sendNothing(outlet: Outlet): void {
  begin(outlet, 204, 'no-store')
  end(outlet)
}

/** The envelope of every answer that is no success. */
export function sendFault(outlet: Outlet, fault: Fault, allow?: string): void {
  const { code, message, detail } = fault
  const headers: [name: string, value: string][] = [['content-type', JSON_TYPE]]
  if (allow !== undefined) headers.push(['allow', allow])
  if (code === 'UNAUTHENTICATED') headers.push(['www-authenticate', outlet.challenge ?? 'Bearer'])
  if (code === 'UNAVAILABLE') headers.push(['retry-after', '1'])
  const waitMs = detail?.['retryAfterMs']
  if (typeof waitMs === 'number' && !outlet.headers.some(([name]) => name === 'retry-after'))
    headers.push(['retry-after', String(Math.ceil(waitMs / 1000))])
  if (code === 'RANGE_NOT_SATISFIABLE') headers.push(['content-range', `bytes */${String(detail?.['size'])}`])
  if (code === 'UPGRADE_REQUIRED') headers.push(['upgrade', 'websocket'])
  const text = JSON.stringify({ error: { code, message, ...(detail && { detail }) } })
  if (hasMuchToCome(outlet.request, fault)) {
    outlet.sent = { status: fault.status, bytes: Buffer.byteLength(text) }
    return sendAhead(outlet, { status: fault.status, headers, text })
  }
  const response = begin(outlet, fault.status, 'no-store')
  for (const [name, value] of headers) response.header(name, value)
  end(outlet, text)
}

/**
 * Bytes go out as fast as the reader takes them, from the one buffer: a copy for each slow reader would be expensive.
 */
export async function sendBytes(outlet: Outlet, answer: BytesAnswer): Promise<void> {
  const { bytes, contentType, etag, headers } = answer
  const isKnown = etag !== undefined && matches(outlet.request.headers['if-none-match'], etag)
  const response = begin(outlet, isKnown ? 304 : 200, 'private, no-cache')
  if (etag !== undefined) response.header('etag', etag)
  for (const [name, value] of Object.entries(headers)) response.header(name, value)
  if (isKnown) return end(outlet)
  response.header('content-type', contentType)
  if (outlet.request.method === 'HEAD' || bytes.byteLength === 0) {
    response.header('content-length', String(bytes.byteLength))
    return end(outlet)
  }
  outlet.sent!.bytes = bytes.byteLength
  const deadline = setTimeout(() => response.close(), BYTES_DEADLINE_MS)
  try {
    await response.stream(Readable.from([bytes]), bytes.byteLength)
  } finally {
    clearTimeout(deadline)
  }
}

/** Status and the headers that no answer lacks. */
export function begin(outlet: Outlet, status: number, cacheControl: string): HttpResponse {
  const { response, requestId, headers, unsent } = outlet
  outlet.sent = { status, bytes: 0 }
  response.raw.onRest = (bytes, cut) => unsent.hold(outlet, bytes, cut)
  for (const [name, value] of headers) response.header(name, value)
  return response
    .status(status)
    .header('x-request-id', requestId)
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', cacheControl)
}

/** When the server stops, the connection ends with its answer: one that is cut later would take unread bytes along. */
export function end(outlet: Outlet, body?: string): void {
  const { response, open, isLast, sent } = outlet
  if (sent && body !== undefined) sent.bytes = Buffer.byteLength(body)
  if (open.isEnding) response.send(body, true)
  else if (isLast || endsUnseen(outlet, body)) sendLast(outlet, body)
  else response.send(body)
}

/**
 * Of an answer without a body nobody can see whether it is taken: behind what is not, µWS keeps 300 bytes of each. So
 * one of so many ends its connection, by chance: who might count them would have others end theirs.
 */
const UNSEEN = 64

function endsUnseen(outlet: Outlet, body = ''): boolean {
  return (body === '' || isWithoutBody(outlet)) && Math.random() < 1 / UNSEEN
}

function isWithoutBody({ request, sent }: Outlet): boolean {
  return request.method === 'HEAD' || sent?.status === 204 || sent?.status === 304
}

/** What an answer says of the length of the body that it leaves out, or has not. */
function lengthOfNone({ response, sent }: Outlet, body: string): string | undefined {
  if (sent?.status === 204 || sent?.status === 304) return undefined
  const given = response.getHeader('content-length')
  if (typeof given === 'string') return given
  return body === '' ? undefined : String(Buffer.byteLength(body))
}

/**
 * Ends the connection too. µWS itself does so when all has been sent, and until then it serves further requests. So the
 * answer is written as what it passes on unread, the value of a header, and the response stays pending.
 */
function sendLast(outlet: Outlet, body = ''): void {
  const { request, response } = outlet
  const text = isWithoutBody(outlet) ? '' : body
  // The line break that µWS adds ends the head, or counts as body: behind JSON it means nothing.
  const length = text === '' ? lengthOfNone(outlet, body) : String(Buffer.byteLength(text) + 2)
  response.atomic(() => {
    response.begin_write()
    if (length !== undefined) response.raw.writeHeader('content-length', length)
    response.raw.writeHeader('connection', text === '' ? 'close\r\n' : `close\r\n\r\n${text}`)
  })
  closeWithBody(request, response)
}

/** `If-None-Match` compares weakly: a proxy that compressed our answer has marked the tag with `W/`. */
export function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
}
