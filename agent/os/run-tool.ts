import { pause } from '@windlass/shared/time.ts'
import { runSilent, startTurn, type Exit } from './process.ts'

/** Found by the system; it inherits nothing else. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' }
/** A process that waits in the kernel for a disk does not end when it is killed. */
const KILLED_MS = 1_000

/**
 * Runs a tool of the system to its end, or ends it after `deadlineMs`. What it says is thrown away, so that there is
 * nothing between it and the agent: one that runs as the user of a run could be taken over by a program of that user,
 * which could hand us descriptors over a socket.
 */
export async function runTool(file: string, args: readonly string[], deadlineMs: number): Promise<Exit> {
  await startTurn()
  const over = new AbortController()
  const late = pause(deadlineMs + KILLED_MS, over.signal)
  const failed = `${file} has not ended, and cannot be ended`
  const exit = runSilent(file, args, { env: ENVIRONMENT, deadlineMs })
  return Promise.race([exit, late.then(() => ({ failed }))]).finally(() => over.abort())
}
