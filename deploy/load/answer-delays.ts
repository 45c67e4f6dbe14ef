import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { within } from '@windlass/shared/time.ts'
import type { Asked, Looked } from './answer-probe.ts'

const ANSWERS_MS = 70_000

/**
 * How long each answer to a request took, in milliseconds, until the signal fires. Asked by a process of its own:
 * whoever sends the load has bodies of megabytes to make, and would count its own stalls as the coordinator's.
 */
export async function answerDelays(asked: Asked, signal: AbortSignal): Promise<number[]> {
  const child = fork(join(import.meta.dirname, 'answer-probe.ts'), [JSON.stringify(asked)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  try {
    if (!signal.aborted) await once(signal, 'abort')
    const said = once(child, 'message') as Promise<[Looked]>
    child.send('stop')
    const [{ delays, error }] = await within(ANSWERS_MS, said, `the probe of ${asked.url} did not answer`)
    if (error !== undefined) throw new Error(error)
    return delays
  } finally {
    child.kill('SIGKILL')
  }
}

/** The same for `/healthz`. */
export const healthDelays = (url: string, signal: AbortSignal) =>
  answerDelays({ url: `${url}/healthz`, expect: 200 }, signal)
