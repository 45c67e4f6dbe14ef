import { execa, type Options } from 'execa'
import { shortMessageOf, type Exit } from './process.ts'

/** Found by the system; it inherits nothing else. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' }

/**
 * Runs a tool of the system to its end, or ends it after `deadlineMs`. What it says is thrown away, so that there is
 * nothing between it and the agent: one that runs as the user of a run could be taken over by a program of that user,
 * which could hand us descriptors over a socket.
 */
export async function runTool(file: string, args: readonly string[], deadlineMs: number): Promise<Exit> {
  const result = await execa(file, args, { ...OPTIONS, timeout: deadlineMs })
  const { exitCode, signal } = result
  if (exitCode === undefined && signal === undefined) return { failed: shortMessageOf(result) }
  return { exitCode: exitCode ?? null, signal: signal ?? null }
}

const OPTIONS = {
  cwd: '/',
  env: ENVIRONMENT,
  extendEnv: false,
  stdio: 'ignore',
  reject: false,
  killSignal: 'SIGKILL',
  // What somebody types at the agent's terminal does not end it.
  detached: true,
  cleanup: false,
} as const satisfies Options
