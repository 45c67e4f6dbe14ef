import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { PassThrough, Transform, type TransformCallback } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { pack, type Pack } from 'tar-stream'

export interface Entry {
  path: string
  /** May be executed. */
  isProgram?: boolean
  content: string | { file: string }
}

const GZIP_OS_BYTE = 9
const GZIP_OS_UNKNOWN = 255

/** A gzipped tar of the entries below one folder; the same entries give the same bytes. Answers its SHA-256 in hex. */
export async function writeArchive(path: string, folder: string, entries: readonly Entry[]): Promise<string> {
  const hash = createHash('sha256')
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      hash.update(chunk)
      done(null, chunk)
    },
  })
  const archive = pack()
  const written = pipeline(
    archive.pipe(new PassThrough()),
    createGzip({ level: 6 }),
    withoutSystem(),
    hashing,
    createWriteStream(path),
  )
  await Promise.all([fill(archive, folder, entries), written])
  return hash.digest('hex')
}

async function fill(archive: Pack, folder: string, entries: readonly Entry[]): Promise<void> {
  for (const entry of entries.toSorted(byPath)) await add(archive, folder, entry)
  archive.finalize()
}

async function add(archive: Pack, folder: string, { path, isProgram, content }: Entry): Promise<void> {
  const size = typeof content === 'string' ? Buffer.byteLength(content) : (await stat(content.file)).size
  const mode = isProgram ? 0o755 : 0o644
  const header = { name: `${folder}/${path}`, size, mode, mtime: new Date(0), uid: 0, gid: 0, type: 'file' as const }
  if (typeof content === 'string') {
    archive.entry(header, content)
    return
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const sink = archive.entry(header, (error) => (error ? reject(error) : resolve()))
  await Promise.all([pipeline(createReadStream(content.file), sink), promise])
}

/** zlib writes into the header which system it was built for. */
function withoutSystem(): Transform {
  let position = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      const at = GZIP_OS_BYTE - position
      if (at >= 0 && at < chunk.length) chunk[at] = GZIP_OS_UNKNOWN
      position += chunk.length
      done(null, chunk)
    },
  })
}

// By code units: a locale's order would differ between machines.
function byPath(a: Entry, b: Entry): number {
  if (a.path === b.path) return 0
  return a.path < b.path ? -1 : 1
}
