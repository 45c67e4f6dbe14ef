import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { pack as tarPack } from 'tar-stream'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'

export type Packed = { digest: string; bytes: Buffer }

const GZIP_OS_BYTE = 9
const GZIP_OS_UNKNOWN = 255

/** A gzipped tar of the files and its SHA-256 in hex. The same files, in any order, give the same bytes. */
export async function pack(files: readonly SourceFile[]): Promise<Packed> {
  const bytes = await promisify(gzip)(await tar(files), { level: 6 })
  // zlib writes here which system it was built for.
  bytes[GZIP_OS_BYTE] = GZIP_OS_UNKNOWN
  return { digest: createHash('sha256').update(bytes).digest('hex'), bytes }
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
