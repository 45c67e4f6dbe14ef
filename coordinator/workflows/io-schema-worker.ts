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
    return { broken: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
