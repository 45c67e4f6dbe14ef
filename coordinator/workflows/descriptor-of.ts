import { DESCRIPTOR_FILE, type Descriptor } from '@windlass/shared/model/descriptor.ts'
import { nearest } from '@windlass/shared/did-you-mean.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { DeployError } from './deploy-error.ts'
import { readDescriptor } from './descriptor.ts'
import { refuseUnstorable } from './storable.ts'

/** The descriptor among the files; its entry is one of them. Throws a DeployError for what the customer has to mend. */
export function descriptorOf(files: readonly SourceFile[]): Descriptor {
  const descriptor = readDescriptor(descriptorIn(files))
  refuseUnstorable(descriptor, DESCRIPTOR_FILE)
  refuseMissingEntry(files, descriptor.entry)
  return descriptor
}

function descriptorIn(files: readonly SourceFile[]): string {
  const found = files.find(({ path }) => path === DESCRIPTOR_FILE)
  if (found) return found.content
  const elsewhere = files.find(({ path }) => path.endsWith(`/${DESCRIPTOR_FILE}`))
  const hint = elsewhere
    ? `it lies in \`${elsewhere.path}\`: send that folder's files`
    : 'add one, such as { "slug": "my-workflow" }'
  throw new DeployError(`\`${DESCRIPTOR_FILE}\` is not among the files: ${hint}`, { path: 'files' })
}

function refuseMissingEntry(files: readonly SourceFile[], entry: string) {
  const paths = files.map(({ path }) => path)
  if (paths.includes(entry)) return
  const near = nearest(entry, paths)
  const hint =
    near === undefined ? `add it, or name another file as \`entry\` in ${DESCRIPTOR_FILE}` : `did you mean \`${near}\`?`
  throw new DeployError(`entry \`${entry}\` is not among the files: ${hint}`, { path: 'entry', file: DESCRIPTOR_FILE })
}
