import { type FileHandle, open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { FileAnswer } from '../api/call.ts'
import { begin, end, matches, type Outlet } from './answer.ts'

/** Some four of them lie here for each reader. */
const CHUNK_BYTES = 32 * 1024

/**
 * A file goes out piece by piece, as fast as its reader takes it. It may take an hour over a slow line; whoever takes
 * nothing at all for `stallMs` is cut.
 */
export async function sendFile(outlet: Outlet, answer: FileAnswer, stallMs: number): Promise<void> {
  // Opened before anything is said: of a file that has gone meanwhile an error can still be answered.
  const file = await open(answer.path)
  try {
    await sendOpen(outlet, answer, file, stallMs)
  } finally {
    await file.close()
  }
}

async function sendOpen(outlet: Outlet, answer: FileAnswer, file: FileHandle, stallMs: number): Promise<void> {
  const { request } = outlet
  const { size } = await file.stat()
  const isKnown = matches(request.headers['if-none-match'], answer.etag)
  const leave = isKnown || request.method === 'HEAD' ? undefined : answer.takeSeat()
  try {
    await sendBody(outlet, answer, { file, size, isKnown }, stallMs)
  } finally {
    leave?.()
  }
}

interface Opened {
  file: FileHandle
  size: number
  /** The reader has it already. */
  isKnown: boolean
}

async function sendBody(outlet: Outlet, answer: FileAnswer, opened: Opened, stallMs: number): Promise<void> {
  const { file, size, isKnown } = opened
  const { request, response } = outlet
  begin(outlet, isKnown ? 304 : 200, 'private, no-cache').header('etag', answer.etag)
  if (isKnown) return end(outlet)
  response.header('content-type', answer.contentType)
  if (request.method === 'HEAD' || size === 0) {
    response.header('content-length', String(size))
    return end(outlet)
  }
  outlet.sent!.bytes = size
  const stalled = setTimeout(() => response.close(), stallMs)
  try {
    const source = file.createReadStream({ highWaterMark: CHUNK_BYTES, autoClose: false })
    // The next piece is read when the one before has been taken.
    await response.stream(Readable.from(tellingOf(source, () => stalled.refresh())), size)
  } finally {
    clearTimeout(stalled)
  }
}

async function* tellingOf(source: AsyncIterable<Buffer>, onPiece: () => void): AsyncGenerator<Buffer> {
  for await (const piece of source) {
    onPiece()
    yield piece
  }
}
