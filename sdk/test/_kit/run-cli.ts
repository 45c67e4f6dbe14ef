import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { KEY, ORG } from './fake-service.ts'

const BIN = path.resolve(import.meta.dirname, '../../cli/windlass.mjs')
const DEADLINE_MS = 15_000

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
  /** Sends SIGINT when standard error holds this text. */
  interruptAt?: string
}

/** The command line in a process of its own, with nothing of our own environment. */
export async function runCli(args: string[], options: CliOptions = {}): Promise<Ended> {
  const named = options.url === undefined ? {} : { WINDLASS_URL: options.url, WINDLASS_API_KEY: KEY, WINDLASS_ORG: ORG }
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: options.cwd ?? os.tmpdir(),
    env: { PATH: process.env['PATH'], HOME: os.tmpdir(), ...marker(), ...named, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
  const ended = { stdout: '', stderr: '' }
  let isInterrupted = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ended.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ended.stderr += text
    if (isInterrupted || options.interruptAt === undefined || !ended.stderr.includes(options.interruptAt)) return
    isInterrupted = true
    child.kill('SIGINT')
  })
  child.stdin.end(options.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...ended }
}

/** By which the test runner finds processes that were left behind. */
function marker(): Record<string, string> {
  const run = process.env['WINDLASS_TEST_RUN']
  return run === undefined ? {} : { WINDLASS_TEST_RUN: run }
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
