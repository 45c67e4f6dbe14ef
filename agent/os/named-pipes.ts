import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Stream } from 'node:stream'
import type { OwnInput, OwnPipe } from './process.ts'
import { runTool } from './run-tool.ts'

const MKFIFO_MS = 5_000
/** Meanwhile everything else stands still. */
const MKFIFO_NOW_MS = 1_000
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin' }

const argsFor = (files: readonly string[]) => ['-m', '600', ...files]

/** Makes named pipes that nobody but their owner can open. Node has no call for it. */
export async function makePipes(files: readonly string[]): Promise<void> {
  const exit = await runTool('mkfifo', argsFor(files), MKFIFO_MS)
  if ('failed' in exit) throw new Error(`mkfifo has failed: ${exit.failed}`)
  if (exit.exitCode !== 0) throw new Error(`mkfifo has failed: ${exit.exitCode ?? exit.signal}`)
}

/** The same for whoever cannot wait. It takes as long as the start of any process. */
export function makePipesNow(files: readonly string[]): void {
  const options = { cwd: '/', env: ENVIRONMENT, stdio: 'ignore', timeout: MKFIFO_NOW_MS } as const
  const { status, error } = spawnSync('mkfifo', argsFor(files), options)
  if (status !== 0) throw new Error('mkfifo has failed', { cause: error })
}

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** Both ends of one: for a process what it writes, and here what comes out of it. */
export function openOutput(file: string): OwnPipe {
  const read = readPipe(file)
  try {
    return { given: openSync(file, O_WRONLY), read }
  } catch (error) {
    read.destroy()
    throw error
  }
}

/** The same, and the process can read as well as write: so that the pipe never is without a reader. */
export function openLastingOutput(file: string): OwnPipe {
  const given = openSync(file, O_RDWR)
  try {
    return { given, read: readPipe(file) }
  } catch (error) {
    closeSync(given)
    throw error
  }
}

/** Both ends of one: for a process what it reads, and here what goes into it. */
export function openInput(file: string): OwnInput {
  // Without it, each end would wait for the other. The process reads without an event loop, so its end may wait.
  const opened = [openSync(file, O_RDWR)]
  try {
    const given = openSync(file, O_RDONLY)
    opened.push(given)
    const write = writePipe(file)
    opened.pop()
    return { given, write }
  } finally {
    opened.forEach((fd) => closeSync(fd))
  }
}

/** What goes into one that has a reader. */
export function writePipe(file: string): Socket {
  const fd = openSync(file, O_WRONLY | O_NONBLOCK)
  return noted(fd, new Socket({ fd, readable: false, writable: true }))
}

/** What comes out of one. It ends when nobody is left who could write to it. */
export function readPipe(file: string): Socket {
  const fd = openSync(file, O_RDONLY | O_NONBLOCK)
  return noted(fd, new Socket({ fd, readable: true, writable: false }))
}

const descriptors = new WeakMap<Stream, number>()

function noted(fd: number, pipe: Socket): Socket {
  descriptors.set(pipe, fd)
  return pipe
}

/** Those of our ends of pipes, among these. */
export function descriptorsOf(streams: readonly Stream[]): number[] {
  return streams.flatMap((stream) => descriptors.get(stream) ?? [])
}
