import { pipeline, type Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { MOST_BUNDLE_BYTES } from '@windlass/shared/model/workflow.ts'
import { extract, type Extract } from 'tar-stream'

/** A file that a reader has come upon in a pack. */
export interface PackedFile {
  readonly path: string
  /** Its text, in pieces between whole characters. Taken to its end, or not at all, before the next file. */
  text(): AsyncGenerator<string>
}

/** Bytes that are unpacked at a time: some 0.3 ms of work for whoever reads them. */
const PIECE_BYTES = 64 * 1024
/**
 * The largest files that a deploy may be allowed to have, a header and padding for each of 2,000, and air. Not what it
 * may have at present: a version that was deployed under a higher limit stays readable.
 */
const MAX_UNPACKED_BYTES = MOST_BUNDLE_BYTES + 16 * 1024 * 1024

/**
 * The files of a pack in the order of their paths, unpacked as they are read and beside the event loop. `next` is
 * waited for before each piece. What stands behind the file at which the reader leaves is not unpacked.
 */
export async function* unpack(packed: Readable, next: () => Promise<void>): AsyncGenerator<PackedFile> {
  const entries = extract()
  // A pack that breaks off is told by the entries, which `feed` ends with the error.
  const unzipped = pipeline(packed, createGunzip({ chunkSize: PIECE_BYTES }), () => undefined)
  const fed = feed(unzipped, entries, next)
  try {
    for await (const entry of entries) {
      const { name, type } = entry.header
      if (type !== 'file') throw new Error(`pack holds \`${name}\`, which is no plain file`)
      yield { path: name, text: () => textOf(entry as AsyncIterable<Buffer>) }
      entry.resume()
    }
  } finally {
    entries.destroy()
    unzipped.destroy()
    await fed
  }
}

async function feed(unzipped: AsyncIterable<Buffer>, entries: Extract, next: () => Promise<void>): Promise<void> {
  const closed = new Promise<void>((resolve) => entries.once('close', () => resolve()))
  let room = MAX_UNPACKED_BYTES
  try {
    for await (const piece of unzipped) {
      room -= piece.length
      if (room < 0) throw new Error(`a pack has more than ${MAX_UNPACKED_BYTES} bytes`)
      await next()
      if (entries.destroyed) return
      if (entries.write(piece)) continue
      await Promise.race([new Promise<void>((resolve) => entries.once('drain', () => resolve())), closed])
    }
    entries.end(undefined)
  } catch (error) {
    // Of a reader who has left, or whom it tells.
    if (!entries.destroyed) entries.destroy(error as Error)
  }
}

async function* textOf(entry: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  for await (const bytes of entry) {
    const text = decoder.write(bytes)
    if (text !== '') yield text
  }
  const rest = decoder.end()
  if (rest !== '') yield rest
}
