import { DESCRIPTOR_FILE, type Descriptor } from '@windlass/shared/model/descriptor.ts'
import { nearest } from '@windlass/shared/did-you-mean.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { type Packed, pack } from '../bundles/pack.ts'
import { bundleWorkflow, stopBundler } from './bundle.ts'
import { DeployError, type DeployProblem } from './deploy-error.ts'
import { readDescriptor } from './descriptor.ts'
import { dubious } from './dubious.ts'
import { effectless } from './effectless.ts'
import { createIoSchemaReader, type IoSchemaReader } from './io-schema.ts'
import type { JsonSchema } from './json-schema.ts'
import { checkSourceFiles } from './source-files.ts'
import { refuseUnstorable } from './storable.ts'
import { validatorOf } from './validate.ts'

export type BuiltWorkflow = {
  descriptor: Descriptor
  /** What an agent executes: `main.mjs` and its source map. */
  bundle: Packed
  /** The files as they were sent. */
  source: Packed
  inputSchema: JsonSchema
  outputSchema: JsonSchema
  /** What a person should know, though nothing of it stands in the way. */
  warnings: DeployProblem[]
}

export type WorkflowBuilder = {
  /** Files in, everything a version consists of out. Throws a DeployError for what the customer has to mend. */
  build(files: readonly SourceFile[]): Promise<BuiltWorkflow>
  close(): Promise<void>
}

/** Nothing of the customer's code is executed here: it is parsed, bundled and type-checked. */
export function createWorkflowBuilder(ioSchemas: IoSchemaReader = createIoSchemaReader()): WorkflowBuilder {
  return {
    async build(files) {
      checkSourceFiles(files)
      const descriptor = readDescriptor(descriptorIn(files))
      refuseUnstorable(descriptor, DESCRIPTOR_FILE)
      refuseMissingEntry(files, descriptor.entry)
      // First, and alone: what esbuild says of a syntax error is better than what a type checker says.
      const bundled = await bundleWorkflow(files, descriptor.entry)
      const [schemas, bundle, source] = await Promise.all([
        ioSchemas.read(files, descriptor.entry),
        pack(bundled.files),
        pack(files),
      ])
      for (const schema of [schemas.inputSchema, schemas.outputSchema]) {
        refuseUnstorable(schema, descriptor.entry)
        refuseUncompilable(schema, descriptor.entry)
      }
      const warnings = [...effectless(descriptor), ...dubious(descriptor), ...bundled.warnings, ...schemas.warnings]
      return { descriptor, bundle, source, ...schemas, warnings }
    },
    async close() {
      await Promise.all([ioSchemas.close(), stopBundler()])
    },
  }
}

/** A schema that does not compile would fail every run; better now, and to us. */
function refuseUncompilable(schema: JsonSchema, entry: string) {
  try {
    validatorOf(schema)
  } catch (error) {
    // The compiler of schemas recurses, as deep as a type has properties.
    if (!(error instanceof RangeError)) throw error
    const message = `the types of \`run\` in ${entry} are too large to be checked: give its input and its return value plainer types`
    throw new DeployError(message, { path: `files/${entry}`, file: entry })
  }
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
