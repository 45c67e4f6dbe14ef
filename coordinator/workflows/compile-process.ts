import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { serve } from '../tools/serve.ts'
import { BundlerGone, bundleWorkflow } from './bundle.ts'
import type { CompileAnswer, CompileJob } from './compile.ts'
import { DeployError } from './deploy-error.ts'
import { descriptorOf } from './descriptor-of.ts'
import { type FilePiece, filesOf } from './file-pieces.ts'
import { deriveIoSchemas } from './io-schema-derive.ts'

/**
 * The process that reads descriptors and holds bundler and type checker, so that their time and memory are not the
 * coordinator's.
 */
serve(async (_: CompileJob, step, pieces): Promise<CompileAnswer> => {
  const files = filesOf(pieces as FilePiece[])
  try {
    const descriptor = descriptorOf(files)
    return { compiled: { descriptor, ...(await compiled(files, descriptor.entry, step)) } }
  } catch (error) {
    if (error instanceof DeployError) return { refused: { message: error.message, detail: error.detail } }
    throw error
  }
})

async function compiled(files: readonly SourceFile[], entry: string, step: () => void) {
  try {
    // First, and alone: what esbuild says of a syntax error is better than what a type checker says.
    const bundle = await bundleWorkflow(files, entry)
    step()
    return { bundle, schemas: deriveIoSchemas(files, entry) }
  } catch (error) {
    if (error instanceof RangeError && /call stack/.test(error.message)) throw tooDeep(entry)
    // Nothing but the limit of memory ends esbuild; this process ends as if it had been its own.
    if (error instanceof BundlerGone) process.abort()
    throw error
  }
}

/** TypeScript's parser and checker recurse: a thousand brackets within one another are too many for the stack. */
function tooDeep(entry: string): DeployError {
  const message =
    `the source of ${entry}, or of a file that it imports, nests too deep to be read: ` +
    'break up its longest expressions'
  return new DeployError(message, { path: `files/${entry}`, file: entry })
}
