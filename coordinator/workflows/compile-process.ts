import { serve } from '../tools/serve.ts'
import { BundlerGone, bundleWorkflow } from './bundle.ts'
import type { CompileAnswer, CompileJob } from './compile.ts'
import { DeployError } from './deploy-error.ts'
import { type FilePiece, filesOf } from './file-pieces.ts'
import { deriveIoSchemas } from './io-schema-derive.ts'

/** The process that holds bundler and type checker, so that their seconds and memory are not the coordinator's. */
serve(async ({ entry }: CompileJob, step, pieces): Promise<CompileAnswer> => {
  const files = filesOf(pieces as FilePiece[])
  try {
    // First, and alone: what esbuild says of a syntax error is better than what a type checker says.
    const bundle = await bundleWorkflow(files, entry)
    step()
    return { compiled: { bundle, schemas: deriveIoSchemas(files, entry) } }
  } catch (error) {
    if (error instanceof DeployError) return { refused: { message: error.message, detail: error.detail } }
    if (error instanceof RangeError && /call stack/.test(error.message)) return { refused: tooDeep(entry) }
    // Nothing but the limit of memory ends esbuild; this process ends as if it had been its own.
    if (error instanceof BundlerGone) process.abort()
    throw error
  }
})

/** TypeScript's parser and checker recurse: a thousand brackets within one another are too many for the stack. */
function tooDeep(entry: string) {
  const message =
    `the source of ${entry}, or of a file that it imports, nests too deep to be read: ` +
    'break up its longest expressions'
  return { message, detail: { path: `files/${entry}`, file: entry } }
}
