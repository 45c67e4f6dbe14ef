import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Source } from '../workflows/sources.ts'
import { begin, end, JSON_TYPE, matches, type Outlet } from './answer.ts'
import { chained, cutting, type Reading } from './answer-pieces.ts'

/** Characters that go out at once, at least. */
const PIECE_CHARS = 64 * 1024

export interface FilesText {
  /** JSON text of the answer without its files, which ends in an empty list of them. */
  around: string
  files: Source
}

/**
 * A JSON answer with files goes out piece by piece, as fast as its reader takes it: to make one text of 50 MiB of them
 * would stop everything else for a second. Whoever takes nothing for `stallMs` is cut, and whoever
 * may read no more.
 */
export async function sendFiles(outlet: Outlet, { around, files }: FilesText, reading: Reading): Promise<void> {
  const { request, response } = outlet
  // Of what the text is made of, so that a client which has it costs nothing.
  const etag = `"${hash('sha1', around + files.digest, 'base64url')}"`
  const isKnown = matches(request.headers['if-none-match'], etag)
  if (isKnown || request.method === 'HEAD') {
    begin(outlet, isKnown ? 304 : 200, 'private, no-cache').header('etag', etag)
    if (!isKnown) response.header('content-type', JSON_TYPE)
    return end(outlet)
  }
  const pieces = gathered(textOf(around, files))
  try {
    // Before anything is said: an error can still be answered.
    const first = await pieces.next()
    const second = await pieces.next()
    if (response.completed) return
    begin(outlet, 200, 'private, no-cache').header('etag', etag).header('content-type', JSON_TYPE)
    if (second.done) return end(outlet, first.value)
    const all = chained([first.value ?? '', second.value], pieces)
    await response.stream(Readable.from(cutting(all, outlet, reading)))
  } finally {
    await pieces.return(undefined)
  }
}

async function* textOf(around: string, files: Source): AsyncGenerator<string> {
  yield around.slice(0, -2)
  yield* files.json()
  yield around.slice(-2)
}

async function* gathered(texts: AsyncGenerator<string>): AsyncGenerator<string, undefined> {
  let piece = ''
  for await (const text of texts) {
    piece += text
    if (piece.length < PIECE_CHARS) continue
    yield piece
    piece = ''
  }
  // A chunk of nothing would be the end of the answer.
  if (piece !== '') yield piece
}
