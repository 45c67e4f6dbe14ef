import { createHash } from 'node:crypto'
import { buffer, text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { extract, pack as tarPack } from 'tar-stream'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'

export type Packed = { digest: string; bytes: Buffer }

// Files of 50 MiB, a header and padding for each of 2,000, and air.
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024
const GZIP_OS_BYTE = 9
const GZIP_OS_UNKNOWN = 255

/** A gzipped tar of the files and its SHA-256 in hex. The same files, in any order, give the same bytes. */
export async function pack(files: readonly SourceFile[]): Promise<Packed> {
  const bytes = await promisify(gzip)(await tar(files), { level: 6 })
  // zlib writes here which system it was built for.
  bytes[GZIP_OS_BYTE] = GZIP_OS_UNKNOWN
  return { digest: createHash('sha256').update(bytes).digest('hex'), bytes }
}

/** The files of a pack, in the order of their paths. */
export async function unpackInMemory(bytes: Uint8Array): Promise<SourceFile[]> {
  const tarBytes = await promisify(gunzip)(bytes, { maxOutputLength: MAX_UNPACKED_BYTES })
  const entries = extract()
  entries.end(tarBytes)
  const files: SourceFile[] = []
  for await (const entry of entries) {
    if (entry.header.type !== 'file') throw new Error(`pack holds \`${entry.header.name}\`, which is no plain file`)
    files.push({ path: entry.header.name, content: await text(entry) })
  }
  return files
}

async function tar(files: readonly SourceFile[]): Promise<Buffer> {
  const archive = tarPack()
  for (const { path, content } of files.toSorted(byPath)) {
    archive.entry({ name: path, mtime: new Date(0), mode: 0o644, uid: 0, gid: 0, type: 'file' }, content)
  }
  archive.finalize()
  return buffer(archive)
}

// By code units: a locale's order would differ between machines.
function byPath(a: SourceFile, b: SourceFile): number {
  if (a.path === b.path) return 0
  return a.path < b.path ? -1 : 1
}
