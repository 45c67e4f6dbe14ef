import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { log } from 'windlass'
import type { RunContext } from 'windlass'

export interface Input {
  how: 'throw' | 'exit' | 'die' | 'flood' | 'misfit' | 'large' | 'escape' | 'look'
}

export interface Output {
  /** Always a number, but for the run that is asked to lie. */
  answer: number
  text?: string
  environment?: Record<string, string>
}

/** A line with its end. */
const LINE_BYTES = 1000
const LINES = 100_000
const LARGE = 2 * 1024 * 1024

const WAYS: Record<Input['how'], (attempt: number) => Output | Promise<Output>> = {
  throw: breakDown,
  exit: () => process.exit(3),
  die: () => {
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => {})
  },
  flood,
  misfit: () => JSON.parse('{"answer":"forty-two"}') as Output,
  large: () => ({ answer: 1, text: 'x'.repeat(LARGE) }),
  escape: async () => ({ answer: await escapee() }),
  look: () => ({ answer: 1, environment: { ...process.env } as Record<string, string> }),
}

/** Does wrong in the way it is asked to. */
export async function run({ how }: Input, context: RunContext): Promise<Output> {
  log(`attempt ${context.attempt}`)
  return WAYS[how](context.attempt)
}

function breakDown(attempt: number): never {
  throw new TypeError(`cannot go on in attempt ${attempt}`)
}

/** Half of it by the console, half past all of JavaScript's streams. */
function flood(): Output {
  const line = 'x'.repeat(LINE_BYTES - 1)
  for (let n = 0; n < LINES / 2; n++) console.log(line)
  const block = `${line}\n`.repeat(100)
  for (let n = 0; n < LINES / 200; n++) writeAll(block)
  return { answer: LINES * LINE_BYTES }
}

function writeAll(text: string): void {
  for (let rest = Buffer.from(text); rest.length > 0;) rest = rest.subarray(written(rest))
}

/** A pipe that is full says so where Node has made it non-blocking. */
function written(bytes: Buffer): number {
  try {
    return writeSync(1, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}

/** A process in a session of its own, with nothing in its environment, that would live on for minutes. */
async function escapee(): Promise<number> {
  const child = spawn('/bin/sleep', ['300'], { detached: true, stdio: 'ignore', env: {} })
  await once(child, 'spawn')
  child.unref()
  return child.pid ?? -1
}
