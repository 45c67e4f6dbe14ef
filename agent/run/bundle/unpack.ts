import { createHash } from 'node:crypto'
import { mkdir, open } from 'node:fs/promises'
import path from 'node:path'
import { Transform } from 'node:stream'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract } from 'tar-stream'
import type { Header } from 'tar-stream'
import { isHostTrouble } from './host-trouble.ts'

interface UnpackLimits {
  packedBytes: number
  unpackedBytes: number
  entries: number
}

const MIB = 1024 * 1024
const UNPACK_LIMITS: UnpackLimits = { packedBytes: 50 * MIB, unpackedBytes: 512 * MIB, entries: 20_000 }

/** Linux takes names of 255 bytes and paths of 4,096; the folder above needs some of it. */
const NAME_BYTES = 255
const PATH_BYTES = 2048

/** The archive breaks a rule: fetching it again would give the same. */
export class BadBundle extends Error {
  override name = 'BadBundle'
}

/**
 * Unpacks a gzipped tar into a folder that exists and is empty, and answers the SHA-256 of the packed bytes. Limits hold
 * while it streams, so that a small archive cannot fill memory or disk before somebody looks.
 */
export async function unpack(packed: Readable, folder: string, limits: UnpackLimits = UNPACK_LIMITS): Promise<string> {
  const hash = createHash('sha256')
  const measured = limited(limits.packedBytes, 'packed', (chunk) => hash.update(chunk))
  const archive = extract()
  // Its streams are not Node's own, though they behave like them.
  const sink = archive as unknown as NodeJS.WritableStream
  const entries = archive as unknown as Entries
  const streaming = pipeline(packed, measured, createGunzip(), limited(limits.unpackedBytes, 'unpacked'), sink)
  const [flow, files] = await Promise.allSettled([streaming, writeEntries(entries, folder, limits)])
  // The rule that was broken, or the disk that is full, says more than the stream that was cut because of it.
  if (files.status === 'rejected' && (files.reason instanceof BadBundle || isHostTrouble(files.reason)))
    throw files.reason
  if (flow.status === 'rejected') throw flow.reason
  if (files.status === 'rejected') throw files.reason
  return hash.digest('hex')
}

function limited(limit: number, what: string, onChunk?: (chunk: Buffer) => void): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > limit) return done(new BadBundle(`it holds more than ${limit} bytes ${what}`))
      onChunk?.(chunk)
      done(null, chunk)
    },
  })
}

type Entry = AsyncIterable<Uint8Array> & { header: Header }
type Entries = AsyncIterable<Entry> & { destroy(error: unknown): void }

async function writeEntries(archive: Entries, folder: string, limits: UnpackLimits): Promise<void> {
  const seen = new Set<string>()
  for await (const entry of archive) {
    try {
      const parts = safeParts(entry.header)
      if (seen.size >= limits.entries) throw new BadBundle(`it has more than ${limits.entries} entries`)
      remember(seen, parts)
      await writeEntry(entry, path.join(folder, ...parts))
    } catch (error) {
      const why = clashOf(error, entry.header) ?? error
      // Ends the source as well. The loop by itself would only tell it that somebody has left.
      archive.destroy(why)
      throw why
    }
  }
}

/** Names that differ in case or in their Unicode form are one file on some systems, and the second would replace the first. */
function remember(seen: Set<string>, parts: string[]): void {
  const key = parts.join('/').normalize('NFC').toLowerCase()
  if (seen.has(key)) throw new BadBundle(`the entry ${JSON.stringify(parts.join('/'))} is there twice`)
  seen.add(key)
}

/** Before it there was nothing in the folder: what stands in the way of an entry is another one. */
function clashOf(error: unknown, header: Header): BadBundle | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException
  const name = nameOf(header)
  if (code === 'EEXIST' && syscall === 'open') return new BadBundle(`the entry ${name} is a file and a folder`)
  if (code === 'ENOTDIR' || code === 'EEXIST') return new BadBundle(`the entry ${name} is below a file`)
  return undefined
}

const nameOf = (header: Header) => JSON.stringify(header.name.slice(0, 200))

async function writeEntry(entry: Entry, target: string): Promise<void> {
  if (entry.header.type === 'directory') {
    await mkdir(target, { recursive: true, mode: 0o755 })
    return
  }
  await mkdir(path.dirname(target), { recursive: true, mode: 0o755 })
  // `wx` follows no link and replaces nothing. Read-only, because runs share what is unpacked.
  const file = await open(target, 'wx', 0o444)
  try {
    for await (const chunk of entry) await file.writeFile(chunk)
  } finally {
    await file.close()
  }
}

/** The parts of an entry's path, none of which leads out of the folder. */
function safeParts(header: Header): string[] {
  const name = nameOf(header)
  if (header.type !== 'file' && header.type !== 'directory') {
    throw new BadBundle(
      `the entry ${name} is a ${header.type ?? 'thing of an unknown type'}; only files and folders are taken`,
    )
  }
  if (header.name.includes('\0') || header.name.includes('\\'))
    throw new BadBundle(`the entry ${name} has a forbidden character`)
  if (header.name.startsWith('/')) throw new BadBundle(`the entry ${name} has an absolute path`)
  if (Buffer.byteLength(header.name) > PATH_BYTES) throw new BadBundle(`the entry ${name} has too long a path`)
  const parts = header.name.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw new BadBundle(`the entry ${name} leads out of the folder`)
  if (parts.some((part) => Buffer.byteLength(part) > NAME_BYTES))
    throw new BadBundle(`the entry ${name} has too long a name`)
  // The parser never ends the content of a folder.
  if (header.type === 'directory' && header.size !== 0)
    throw new BadBundle(`the entry ${name} is a folder with content`)
  if (parts.length === 0 && header.type === 'file') throw new BadBundle(`the entry ${name} has no name`)
  return parts
}
