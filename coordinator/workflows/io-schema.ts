import { Worker } from 'node:worker_threads'
import { Fault } from '@windlass/shared/errors.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { DeployError, type DeployErrorDetail } from './deploy-error.ts'
import type { IoSchemas } from './io-schema-derive.ts'
import { TOOLS_IDLE_MS, whenIdle } from './when-idle.ts'

export type IoSchemaJob = { files: SourceFile[]; entry: string }
export type IoSchemaAnswer =
  | { schemas: IoSchemas }
  | { refused: { message: string; detail: DeployErrorDetail } }
  | { broken: string }

export type IoSchemaReader = {
  /** Schemas of what `run` takes and returns. Jobs are done one after the other, in a thread of their own. */
  read(files: readonly SourceFile[], entry: string): Promise<IoSchemas>
  /** Whether the thread is up just now. */
  isAwake(): boolean
  close(): Promise<void>
}

type Options = {
  /** Longest time that one job may take. */
  deadlineMs?: number
  /** The thread ends when it had nothing to do for this long. */
  idleMs?: number
  memoryMb?: number
  /** Jobs that may wait; a stampede is told to come back. */
  maxWaiting?: number
}

/** Types that ask for more than their share are refused; the thread is started again for the next workflow. */
export function createIoSchemaReader(options: Options = {}): IoSchemaReader {
  const { deadlineMs = 60_000, idleMs = TOOLS_IDLE_MS, memoryMb = 768, maxWaiting = 100 } = options
  let worker: Worker | undefined
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let closed = false

  async function letGo() {
    const ending = worker
    worker = undefined
    await ending?.terminate()
  }
  const idle = whenIdle(idleMs, letGo)

  function start(): Worker {
    const started = new Worker(new URL('./io-schema-worker.ts', import.meta.url), {
      name: 'io-schema',
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    })
    // A thread that dies between two jobs is simply not there for the next one.
    started.on('error', () => forget(started))
    started.on('exit', () => forget(started))
    return started
  }

  function forget(ended: Worker) {
    if (worker === ended) worker = undefined
  }

  async function work(job: IoSchemaJob): Promise<IoSchemas> {
    if (closed) throw new Error('the schema reader is closed')
    worker ??= start()
    try {
      return schemasOf(await answerOf(worker, job, deadlineMs))
    } catch (error) {
      // After anything but a plain refusal nobody knows what state the thread is in.
      if (!(error instanceof DeployError) || error instanceof TooCostly) await letGo()
      throw error
    }
  }

  return {
    async read(files, entry) {
      if (waiting >= maxWaiting)
        throw new Fault('UNAVAILABLE', undefined, `${waiting} deploys are waiting already: try again in a minute`)
      waiting++
      const turn = last.then(() => work({ files: [...files], entry }))
      // The next job waits for the end of this one, however it ends; its outcome belongs to its own caller.
      last = turn.catch(() => undefined)
      return idle.busy(() => turn).finally(() => waiting--)
    },
    isAwake: () => worker !== undefined,
    async close() {
      closed = true
      await idle.now()
    },
  }
}

class TooCostly extends DeployError {}

function schemasOf(answer: IoSchemaAnswer): IoSchemas {
  if ('schemas' in answer) return answer.schemas
  if ('refused' in answer) throw new DeployError(answer.refused.message, answer.refused.detail)
  throw new Error(`the schema reader failed: ${answer.broken}`)
}

/** One question, one answer; or the thread's death, or the deadline. */
function answerOf(worker: Worker, job: IoSchemaJob, deadlineMs: number): Promise<IoSchemaAnswer> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      clearTimeout(timer)
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      // An idle thread must not keep the coordinator from ending.
      worker.unref()
      act()
    }
    const onMessage = (answer: IoSchemaAnswer) => settle(() => resolve(answer))
    const onError = (error: Error) =>
      settle(() => reject(isOutOfMemory(error) ? tooCostly('memory', job.entry) : error))
    const onExit = (code: number) =>
      settle(() => reject(new Error(`the schema reader ended with code ${code} in the middle of a job`)))
    const timer = setTimeout(() => settle(() => reject(tooCostly('time', job.entry))), deadlineMs)
    worker.on('message', onMessage).on('error', onError).on('exit', onExit)
    worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage(job)
  })
}

function tooCostly(what: string, entry: string): TooCostly {
  const message = `the types of \`run\` in ${entry} take too much ${what} to work out: give its input and its return value plainer types`
  return new TooCostly(message, { path: `files/${entry}`, file: entry })
}

function isOutOfMemory(error: Error): boolean {
  return 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}
