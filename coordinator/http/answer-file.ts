import { type FileHandle, open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { FileAnswer } from '../api/call.ts'
import type { DownloadSeat } from '../limits/download-seats.ts'
import { begin, end, matches, type Outlet } from './answer.ts'
import { outwait } from './outwait.ts'
import { type ByteRange, rangeOf } from './range.ts'

/** Some four of them lie here for each reader. */
const CHUNK_BYTES = 32 * 1024

/**
 * A file goes out piece by piece, as fast as its reader takes it. It may take an hour over a slow line; whoever takes
 * nothing at all for `stallMs` is cut.
 */
export async function sendFile(outlet: Outlet, answer: FileAnswer, how: Sending): Promise<void> {
  // Opened before anything is said: of a file that has gone meanwhile an error can still be answered.
  const file = await open(answer.path)
  try {
    await sendOpen(outlet, answer, file, how)
  } finally {
    await file.close()
  }
}

interface Sending {
  stallMs: number
  /** Whether a part of it may be asked for. */
  ranges: boolean
}

async function sendOpen(outlet: Outlet, answer: FileAnswer, file: FileHandle, how: Sending): Promise<void> {
  const { request } = outlet
  const { size } = await file.stat()
  const isKnown = matches(request.headers['if-none-match'], answer.etag)
  const range = how.ranges && !isKnown ? rangeOf(request, size, answer.etag) : undefined
  const seat = isKnown || request.method === 'HEAD' ? undefined : answer.takeSeat(() => outlet.response.close())
  try {
    await sendBody(outlet, answer, { file, size, isKnown, range, seat }, how)
  } finally {
    seat?.leave()
  }
}

interface Opened {
  file: FileHandle
  size: number
  /** The reader has it already. */
  isKnown: boolean
  /** Undefined: all of it. */
  range: ByteRange | undefined
  /** Undefined: nothing of it is sent. */
  seat: DownloadSeat | undefined
}

async function sendBody(outlet: Outlet, answer: FileAnswer, opened: Opened, how: Sending): Promise<void> {
  const { file, size, isKnown, range, seat } = opened
  const { request, response } = outlet
  begin(outlet, isKnown ? 304 : range ? 206 : 200, 'private, no-cache').header('etag', answer.etag)
  if (isKnown) return end(outlet)
  response.header('content-type', answer.contentType)
  if (how.ranges) response.header('accept-ranges', 'bytes')
  if (range) response.header('content-range', `bytes ${range.first}-${range.last}/${size}`)
  if (request.method === 'HEAD' || size === 0) {
    response.header('content-length', String(size))
    return end(outlet)
  }
  const { first, last } = range ?? { first: 0, last: size - 1 }
  const bytes = last - first + 1
  outlet.sent!.bytes = bytes
  const stalled = setTimeout(() => response.close(), how.stallMs)
  const endOutwait = outwait(response)
  try {
    const source = file.createReadStream({ start: first, end: last, highWaterMark: CHUNK_BYTES, autoClose: false })
    // The next piece is read when the one before has been taken.
    const onPiece = (piece: Buffer) => {
      stalled.refresh()
      seat?.took(piece.length)
    }
    await response.stream(Readable.from(tellingOf(source, onPiece)), bytes)
  } finally {
    endOutwait()
    clearTimeout(stalled)
  }
}

async function* tellingOf(source: AsyncIterable<Buffer>, onPiece: (piece: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const piece of source) {
    onPiece(piece)
    yield piece
  }
}
