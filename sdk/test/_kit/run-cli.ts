import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { testCli } from '@windlass/shared/test/_kit/test-run.ts'
import { KEY, ORG } from './fake-service.ts'

const DEADLINE_MS = 60_000

/** Node has no pseudo-terminals, and the command asks its stream for nothing else. */
const TERMINAL = 'data:text/javascript,process.stdout.isTTY=true'

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export interface CliOptions {
  /** The service to speak to; names it by the environment, as a CI would. */
  url?: string
  env?: Record<string, string>
  cwd?: string
  /** Standard input. */
  input?: string
  /** Standard output is taken for a terminal. */
  isTerminal?: boolean
  /** Sends SIGINT when standard error holds this text. */
  interruptAt?: string
}

/** The command line in a process of its own, with nothing of our own environment. */
export async function runCli(args: string[], options: CliOptions = {}): Promise<Ended> {
  const { child, said } = start(args, options)
  let isInterrupted = false
  child.stderr.on('data', () => {
    if (isInterrupted || options.interruptAt === undefined || !said.stderr.includes(options.interruptAt)) return
    isInterrupted = true
    child.kill('SIGINT')
  })
  child.stdin.end(options.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...said }
}

/** One that goes on, for a test that speaks with it meanwhile. */
export interface Going {
  readonly stdout: string
  readonly stderr: string
  /** Waits until standard error matches, looking only at what came since the last time. */
  says(what: RegExp): Promise<void>
  /** The same for standard output. */
  prints(what: RegExp): Promise<void>
  /** Ctrl-C, and how it ended. */
  interrupt(): Promise<Ended>
}

export function goingCli(t: TestContext, args: string[], options: CliOptions = {}): Going {
  const { child, said } = start(args, options)
  t.after(() => child.kill('SIGKILL'))
  const closed = once(child, 'close') as Promise<[number | null]>
  const seen = { stdout: 0, stderr: 0 }
  async function hear(name: keyof typeof seen, what: RegExp): Promise<void> {
    for (;;) {
      const found = what.exec(said[name].slice(seen[name]))
      if (found) return void (seen[name] += found.index + found[0].length)
      const news = once(child[name], 'data').then(() => true)
      const isGone = closed.then(() => false)
      if (!(await Promise.race([news, isGone])))
        throw new Error(`it never said ${String(what)}; it said:\n${said.stderr}\n${said.stdout}`)
    }
  }
  return {
    get stdout() {
      return said.stdout
    },
    get stderr() {
      return said.stderr
    },
    says: (what) => hear('stderr', what),
    prints: (what) => hear('stdout', what),
    async interrupt() {
      child.kill('SIGINT')
      const [code] = await closed
      return { code, ...said }
    },
  }
}

function start(args: string[], options: CliOptions) {
  const { file, variables } = testCli(args)
  const named = options.url === undefined ? {} : { WINDLASS_URL: options.url, WINDLASS_API_KEY: KEY, WINDLASS_ORG: ORG }
  const before = options.isTerminal === true ? ['--import', TERMINAL] : []
  const child = spawn(process.execPath, [...before, file, ...args], {
    cwd: options.cwd ?? os.tmpdir(),
    env: { PATH: process.env['PATH'], HOME: os.tmpdir(), ...variables, ...named, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text))
  return { child, said }
}

/** A folder with these files, gone after the test. */
export async function folderOf(t: TestContext, files: Record<string, string | Uint8Array> = {}): Promise<string> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-cli-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true })
    await writeFile(path.join(folder, name), content)
  }
  return folder
}

/** Standard output as one JSON document per line. */
export function jsonLines(text: string): unknown[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
}
