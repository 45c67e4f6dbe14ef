import { isUtf8 } from 'node:buffer'
import { Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { MOST_LEVELS, nestsDeeper } from '@windlass/shared/json-nesting.ts'
import type { HttpRequest } from './exchange.ts'
import { findTrouble } from './json-text.ts'

/** The fields that a body carries. No body at all is an object without fields. */
export async function readFields(request: HttpRequest, limit: number): Promise<Record<string, unknown>> {
  // Not `request.received`: while the credential was looked up a small body may have come in whole.
  const length = request.headers['content-length']
  if (Number(length ?? 0) === 0 && request.headers['transfer-encoding'] === undefined) return {}
  if (length !== undefined && Number(length) > limit) throw tooLarge(limit)
  assertJson(request.headers['content-type'])
  // A declared length is kept by the parser below us; only a body of unknown length has to be counted.
  const chunked = request.headers['transfer-encoding'] !== undefined
  const bytes = chunked ? await readCounted(request, limit) : await request.buffer()
  return bytes.length === 0 ? {} : parseObject(bytes)
}

function tooLarge(limit: number): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', { limitBytes: limit }, `The request body may have ${limit} bytes at most.`)
}

function assertJson(contentType: string | undefined): void {
  if (contentType === 'application/json') return
  const [type = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  const charset = parameters
    .find((parameter) => parameter.trim().startsWith('charset='))
    ?.split('=')[1]
    ?.trim()
  const isUtf8Charset = charset === undefined || charset.replaceAll('"', '') === 'utf-8'
  if (type.trim() === 'application/json' && isUtf8Charset) return
  throw new Fault('UNSUPPORTED_MEDIA_TYPE', { contentType: contentType ?? null })
}

function readCounted(request: HttpRequest, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let size = 0
    let chunks: Uint8Array[] = []
    request.on('data', (chunk) => {
      size += chunk.byteLength
      if (size <= limit) chunks.push(chunk)
      else {
        chunks = []
        reject(tooLarge(limit))
      }
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', reject)
    request.on('close', () => reject(new ClientGone()))
  })
}

/** The client left before its body was complete: there is nobody to answer, and nothing to log. */
export class ClientGone extends Error {
  constructor() {
    super('the client has gone')
    this.name = 'ClientGone'
  }
}

function parseObject(bytes: Buffer): Record<string, unknown> {
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8.', {})
  const text = bytes.toString('utf8')
  if (nestsDeeper(text, MOST_LEVELS)) throw invalid(`The body nests deeper than ${MOST_LEVELS} levels.`, {})
  const value = parse(text)
  if (MAY_OVERFLOW.test(text)) refuseInfinite(value, [])
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalid('The body must be a JSON object, as in `{"name": …}`.', {})
}

/** Only a large exponent, or very many digits, make a number that is none any more. */
const MAY_OVERFLOW = /[\d.][eE]\+?\d{3}|\d{300}/

/** JSON has no infinity: it would be stored as null, and be something else than was sent. */
function refuseInfinite(value: unknown, at: readonly PropertyKey[]): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    const path = fieldPath(at)
    throw new Fault('VALIDATION_FAILED', { path }, `${path}: is a number beyond 1.8e308; send it as a text.`)
  }
  if (Array.isArray(value)) for (const [i, inner] of value.entries()) refuseInfinite(inner, [...at, i])
  else if (typeof value === 'object' && value !== null)
    for (const [key, inner] of Object.entries(value)) refuseInfinite(inner, [...at, key])
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message names no place for most errors, and quotes the body.
    const { message, offset, line, column } = findTrouble(text)
    throw invalid(`The body is not valid JSON: ${message}.`, { offset, line, column })
  }
}

function invalid(message: string, detail: Record<string, unknown>): Fault {
  return new Fault('VALIDATION_FAILED', { path: '', ...detail }, message)
}
