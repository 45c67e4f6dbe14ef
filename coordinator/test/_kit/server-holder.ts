/** An embedded server that another process supervises: to kill that process, or to run it as another user. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface ServerHolder {
  url: string
  /** Of the server. */
  pid: number
  adopted: boolean
  /** Stops the server and ends the process; answers its exit code. */
  stop(): Promise<number | null>
  /** kill -9 of the process; the server lives on. */
  kill(): Promise<void>
}

export interface HoldOptions {
  user?: { uid: number; gid: number }
  program?: string
}

const PROGRAM = join(import.meta.dirname, '../db/programs/hold-server.ts')

export async function holdServer(home: string, { user, program = PROGRAM }: HoldOptions = {}): Promise<ServerHolder> {
  const child = spawn(process.execPath, [program, home], { ...user, stdio: ['pipe', 'pipe', 'pipe'] })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (complaint += piece))
  const exited = once(child, 'close') as Promise<[number | null]>
  const first = await Promise.race([once(createInterface(child.stdout), 'line'), exited])
  if (typeof first[0] !== 'string') throw new Error(`The process ended with ${first[0]}:\n${complaint}`)
  const { url, pid, adopted } = JSON.parse(first[0]) as { url: string; pid: number; adopted: boolean }
  return {
    url,
    pid,
    adopted,
    stop: async () => {
      child.stdin.end()
      return (await exited)[0]
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
