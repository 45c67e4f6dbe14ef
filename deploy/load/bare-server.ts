import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface BareServer {
  url: string
  pid: number
  stop(): Promise<void>
}

const PROGRAM = fileURLToPath(import.meta.resolve('@windlass/coordinator/test/http/programs/bare-server.ts'))

/** A server of the framework that we use, in a process of its own, which answers constants by their path. */
export async function startBareServer(answers: Record<string, string>): Promise<BareServer> {
  const child = fork(PROGRAM, { stdio: 'ignore' })
  child.send(answers)
  const signal = AbortSignal.timeout(10_000)
  const [{ port }] = (await once(child, 'message', { signal })) as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid!,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
  }
}
