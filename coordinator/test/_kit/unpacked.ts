import { Readable } from 'node:stream'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { unpack } from '../../bundles/unpack.ts'

/** The files of a pack, in the order of their paths. */
export async function unpacked(bytes: Uint8Array): Promise<SourceFile[]> {
  const files: SourceFile[] = []
  for await (const file of unpack(Readable.from([bytes]), () => Promise.resolve())) {
    let content = ''
    for await (const piece of file.text()) content += piece
    files.push({ path: file.path, content })
  }
  return files
}
