import { Readable } from 'node:stream'
import type { PiecesAnswer } from '../api/call.ts'
import { begin, end, type Outlet } from './answer.ts'
import { outwait } from './outwait.ts'
import { type ByteRange, rangeOf } from './range.ts'

/** How far a reader is trusted who takes an answer piece by piece. */
export interface Reading {
  /** How long a reader may stall. */
  stallMs: number
  /** How often its credential is looked at again: over a slow line an answer may take an hour. */
  recheckMs: number
  /** Whether the credential still serves. Never rejects. */
  mayStay: () => Promise<boolean>
}

interface PiecesReading extends Reading {
  /** Whether a part may be asked for. */
  ranges: boolean | undefined
}

/**
 * Bytes that nobody has in memory as a whole go out piece by piece, as fast as the reader takes them. Whoever takes
 * nothing for `stallMs` is cut, and whoever may read no more.
 */
export async function sendPieces(outlet: Outlet, answer: PiecesAnswer, reading: PiecesReading): Promise<void> {
  const { contentType, bytes: size, headers } = answer
  const { request, response } = outlet
  let pieces = answer.pieces
  answer.cut?.addEventListener('abort', () => response.close(), { once: true })
  try {
    // No state but one: what it is of is named by its digest.
    const range = reading.ranges && size !== undefined ? rangeOf(request, size, '') : undefined
    if (range) pieces = partOf(pieces, range)
    const bytes = range ? range.last - range.first + 1 : size
    const isHead = request.method === 'HEAD'
    // Before anything is said: an error can still be answered.
    const first = isHead ? undefined : await pieces.next()
    if (response.completed) return
    begin(outlet, range ? 206 : 200, 'private, no-cache').header('content-type', contentType)
    if (reading.ranges) response.header('accept-ranges', 'bytes')
    if (range) response.header('content-range', `bytes ${range.first}-${range.last}/${size}`)
    for (const [name, value] of Object.entries(headers)) response.header(name, value)
    if (!first || first.done) {
      if (bytes !== undefined) response.header('content-length', String(bytes))
      return end(outlet)
    }
    const all = chained([first.value], pieces)
    await response.stream(Readable.from(cutting(all, outlet, reading)), bytes)
  } finally {
    await pieces.return()
  }
}

/** What stands before it is made all the same, and one piece behind it at most. */
export async function* partOf(
  pieces: PiecesAnswer['pieces'],
  { first, last }: ByteRange,
): AsyncGenerator<Uint8Array, void, void> {
  let at = 0
  for await (const piece of pieces) {
    // Not before there is more: a maker that comes to its end may look whether all was right.
    if (at > last) return
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
    const part = bytes.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at))
    at += bytes.length
    if (part.length > 0) yield part
  }
}

export async function* chained<T>(first: T[], rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first
  yield* rest
}

/**
 * Each piece is to be taken in time. How long it takes to make is not the reader's doing. Cut and not ended: nobody
 * takes a part for the whole.
 */
export async function* cutting(pieces: AsyncIterable<Uint8Array | string>, outlet: Outlet, reading: Reading) {
  const { response, sent } = outlet
  const { stallMs, recheckMs, mayStay } = reading
  const endOutwait = outwait(response)
  const rechecks = setInterval(() => void mayStay().then((may) => may || response.close()), recheckMs)
  try {
    for await (const piece of pieces) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      sent!.bytes += bytes.length
      const stalled = setTimeout(() => response.close(), stallMs)
      try {
        yield bytes
      } finally {
        clearTimeout(stalled)
      }
    }
  } finally {
    endOutwait()
    clearInterval(rechecks)
  }
}
