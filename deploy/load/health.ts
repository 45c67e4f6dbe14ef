import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { within } from '@windlass/shared/time.ts'
import type { Looked } from './health-probe.ts'

const ANSWERS_MS = 30_000

/**
 * How long `/healthz` took each time, in milliseconds, until the signal fires. Asked by a process of its own: whoever
 * sends the load has bodies of megabytes to make, and would count its own stalls as the coordinator's.
 */
export async function healthDelays(url: string, signal: AbortSignal): Promise<number[]> {
  const child = fork(join(import.meta.dirname, 'health-probe.ts'), [url], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  try {
    if (!signal.aborted) await once(signal, 'abort')
    const said = once(child, 'message') as Promise<[Looked]>
    child.send('stop')
    const [{ delays, error }] = await within(ANSWERS_MS, said, 'the probe of /healthz did not answer')
    if (error !== undefined) throw new Error(error)
    return delays
  } finally {
    child.kill('SIGKILL')
  }
}
