import { parentPort } from 'node:worker_threads'
import { DeployError } from './deploy-error.ts'
import { deriveIoSchemas } from './io-schema-derive.ts'
import type { IoSchemaAnswer, IoSchemaJob } from './io-schema.ts'

/** The thread that holds the type checker, so that its seconds and its memory are not the coordinator's. */
parentPort?.on('message', (job: IoSchemaJob) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(answerTo(job))
})

function answerTo({ files, entry }: IoSchemaJob): IoSchemaAnswer {
  try {
    return { schemas: deriveIoSchemas(files, entry) }
  } catch (error) {
    if (error instanceof DeployError) return { refused: { message: error.message, detail: error.detail } }
    if (error instanceof RangeError) return { refused: tooDeep(entry) }
    return { broken: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}

/** TypeScript's parser and checker recurse: a thousand brackets within one another are too many for the stack. */
function tooDeep(entry: string) {
  const message = `the source of ${entry}, or of a file that it imports, nests too deep to be read: break up its longest expressions`
  return { message, detail: { path: `files/${entry}`, file: entry } }
}
