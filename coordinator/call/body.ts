import { isUtf8 } from 'node:buffer'
import { Fault } from '@windlass/shared/errors.ts'
import { countMarks, type Marks, MOST_LEVELS, MOST_MARKS_OF_INPUT, nestsDeeper } from '@windlass/shared/json-nesting.ts'
import { createSlices, turnInLine } from '../slices.ts'
import { ClientGone } from '../unforeseen.ts'
import type { HttpRequest } from './exchange.ts'
import { refuseLossyNumbers } from './json-numbers.ts'
import { troubleOf } from './json-text.ts'
import { Pieces } from './pieces.ts'
import type { Room } from './room.ts'

/** A body that announces more grows as it comes. */
const SET_ASIDE_BYTES = 16 * 1024
/** Bodies up to that are not paced, and have a count of their own. */
export const SMALL_BYTES = 64 * 1024
/** Bodies up to that are not counted: as values they take some 20 KB at most, like all else of a request. */
export const TINY_BYTES = 1024
/** A body that is larger than an input holds files, whose texts do not count. */
const LARGE_CHARS = 1_200_000
const MOST_MARKS_OF_LARGE: Marks = { opened: 100_000, names: 100_000, commas: 200_000 }

/** The fields that a body carries. No body at all is an object without fields. */
export async function readFields(request: HttpRequest, limit: number, room?: Room): Promise<Record<string, unknown>> {
  const bytes = await readBytes(request, limit, room)
  return bytes === undefined || bytes.length === 0 ? {} : asObject(await parseBytes(bytes, room))
}

/** Any JSON value, and how many bytes it took. */
export async function readJson(
  request: HttpRequest,
  limit: number,
  room?: Room,
): Promise<{ value: unknown; bytes: number }> {
  const bytes = await readBytes(request, limit, room)
  if (bytes === undefined || bytes.length === 0) throw invalid('The body is empty.', {})
  return { value: await parseBytes(bytes, room), bytes: bytes.length }
}

async function readBytes(request: HttpRequest, limit: number, room?: Room): Promise<Buffer | undefined> {
  // Not `request.received`: while the credential was looked up a small body may have come in whole.
  const length = request.headers['content-length']
  if (Number(length ?? 0) === 0 && request.headers['transfer-encoding'] === undefined) return undefined
  if (length !== undefined && Number(length) > limit) throw tooLarge(limit, Number(length))
  assertJson(request.headers['content-type'])
  assertPlain(request.headers['content-encoding'])
  const chunked = request.headers['transfer-encoding'] !== undefined
  if (!chunked) room?.announce(Number(length))
  // The framework sets aside what was announced, though nothing of it may ever come.
  return chunked || Number(length) > SET_ASIDE_BYTES ? readCounted(request, limit, room) : request.buffer()
}

/** `bytes`: what was announced, or what has come so far of a body that announces nothing. */
export function tooLarge(limitBytes: number, bytes: number): Fault {
  const message = `The request body may have ${limitBytes} bytes at most.`
  return new Fault('PAYLOAD_TOO_LARGE', { bytes, limitBytes }, message)
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

export function assertPlain(contentEncoding: string | undefined): void {
  if (contentEncoding === undefined || contentEncoding.toLowerCase() === 'identity') return
  const message = 'Send the body as it is: no `Content-Encoding` is taken.'
  throw new Fault('UNSUPPORTED_MEDIA_TYPE', { contentEncoding }, message)
}

function readCounted(request: HttpRequest, limit: number, room?: Room): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let pieces: Pieces | undefined = new Pieces()
    request.on('data', (piece) => {
      if (!pieces) return
      const bytes = pieces.bytes + piece.byteLength
      const refusal = bytes > limit ? tooLarge(limit, bytes) : refusalOf(room, piece.byteLength)
      if (refusal) {
        pieces = undefined
        reject(refusal)
      } else pieces.add(piece)
    })
    request.on('end', () => pieces && resolve(pieces.whole()))
    request.on('error', reject)
    request.on('close', () => reject(new ClientGone()))
  })
}

function refusalOf(room: Room | undefined, bytes: number): Fault | undefined {
  try {
    room?.take(bytes)
    return undefined
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  }
}

function asObject(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalid('The body must be a JSON object, as in `{"name": …}`.', {})
}

/** Each step takes up to 20 ms for a body of 12 MB; between them others have their turn. */
async function parseBytes(bytes: Buffer, room: Room | undefined): Promise<unknown> {
  if (bytes.length > SMALL_BYTES) await makeRoom(bytes, room)
  else if (bytes.length > TINY_BYTES) {
    const turn = room?.holdSmall(bytes.length, () => BYTES_OF_TEXT * bytes.length + besideTexts(bytes))
    if (turn) await turn
  }
  const slice = createSlices(room?.orgId)
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8.', {})
  const text = bytes.toString('utf8')
  if (text.startsWith('\ufeff')) throw invalid('The body begins with a byte order mark; leave it out.', {})
  await slice()
  if (nestsDeeper(text, MOST_LEVELS)) throw invalid(`The body nests deeper than ${MOST_LEVELS} levels.`, {})
  await slice()
  const value = parse(text)
  await slice()
  refuseLossyNumbers(text)
  await slice()
  return value
}

/** Memory of values beside their texts: objects with a name each, lists in a list, and texts of six letters. */
const BYTES_OF = { opened: 56, name: 48, comma: 16 }
/** As it came, as values, as they are printed for the judge, and on their way to the database. */
export const BYTES_OF_TEXT = 4

/**
 * Waits for the turn of a large body, and for room for its values. Its text is made again then: those that wait hold
 * nothing but the bytes that they are counted by.
 */
async function makeRoom(bytes: Buffer, room: Room | undefined): Promise<void> {
  room?.whole()
  await turnInLine(room?.orgId)
  await room?.holdValues({ bytes: bytes.length, besideTexts: besideTexts(bytes) })
  await turnInLine(room?.orgId)
}

function besideTexts(bytes: Buffer): number {
  const { opened, names, commas } = marksOf(bytes.toString('utf8'))
  return opened * BYTES_OF.opened + names * BYTES_OF.name + commas * BYTES_OF.comma
}

/** In one pass, which ends soon in a text of too many. */
function marksOf(text: string): Marks {
  const most = text.length > LARGE_CHARS ? MOST_MARKS_OF_LARGE : MOST_MARKS_OF_INPUT
  const marks = countMarks(text, most)
  if (marks) return marks
  throw invalid(`The body holds too many values: ${most.opened} lists and objects are the most.`, {})
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message, location } = troubleOf(text, error)
    throw invalid(`The body is not valid JSON${message}.`, location)
  }
}

function invalid(message: string, detail: Record<string, unknown>): Fault {
  return new Fault('VALIDATION_FAILED', { path: '', ...detail }, message)
}
