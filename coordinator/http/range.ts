import { Fault } from '@windlass/shared/errors.ts'
import type { HttpRequest } from '../call/exchange.ts'

/** A part of the bytes; both ends belong to it. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

const ONE_RANGE = /^bytes=(\d*)-(\d*)$/

/**
 * The part for which `Range` asks (RFC 9110, section 14); undefined is the whole. The whole is also the answer to
 * several parts at once, to what is no range, and when `If-Range` names another state of the bytes. Throws
 * RANGE_NOT_SATISFIABLE where the part begins behind the end: who has all of it is told so.
 */
export function rangeOf({ method, headers }: HttpRequest, size: number, etag: string): ByteRange | undefined {
  const [, from = '', to = ''] = ONE_RANGE.exec(headers['range']?.trim() ?? '') ?? []
  if (method !== 'GET' || (from === '' && to === '')) return undefined
  if (headers['if-range'] !== undefined && headers['if-range'].trim() !== etag) return undefined
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== '' && to !== '' && Number(to) < first) return undefined
  if (first >= size) throw new Fault('RANGE_NOT_SATISFIABLE', { size })
  return { first, last }
}
