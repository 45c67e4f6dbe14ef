// `npm test` runs all test files, `npm test -- cancel` those with `cancel` in their path. One PostgreSQL serves them all; what
// they leave running is a failure.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { startTestServer } from '../../coordinator/test/_kit/database.ts'
import { ROOMS } from './import-rules.ts'
import { endLeftovers, leftovers, unsupported } from './leftovers.ts'
import { PROJECT, sourceFiles } from './source-files.ts'

/** WINDLASS_TEST_ROUNDS asks tests for more of what they do than there is time for otherwise. */
const IS_LONG = Boolean(process.env.WINDLASS_TEST_ROUNDS)
// The property tests execute a thousand programs on real agents.
const FILE_DEADLINE_MS = IS_LONG ? 3_600_000 : 300_000
const RUN_DEADLINE_MS = IS_LONG ? 2 * 3_600_000 : 25 * 60_000
// The time that the test runner has to end its own children when it is interrupted.
const GRACE_MS = 3_000
// A process that was told to end at the end of a test may need a moment.
const LEFTOVER_PATIENCE_MS = 2_000
const EXIT_ON_SIGNAL = { SIGINT: 130, SIGTERM: 143 } as const

/** Marks all that this run starts: as a variable, and as the name of the folder that temporary files go to. */
const mark = `windlass-test-${randomBytes(4).toString('hex')}`

function wanted(filters: readonly string[]): string[] {
  const files = sourceFiles(PROJECT, '.test.ts').filter((file) => ROOMS.some((room) => file.startsWith(`${room}/`)))
  return files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
}

function makeTemporaryFolder(): string {
  const folder = path.join(tmpdir(), mark)
  mkdirSync(folder)
  // Open to everybody like the folder it stands in: PostgreSQL and some tests run as another user.
  chmodSync(folder, 0o1777)
  return folder
}

/**
 * Runs the files; answers with the exit code. The runner leads a process group of its own, so that a stop reaches all of it.
 */
function runFiles(files: readonly string[], env: NodeJS.ProcessEnv, stop: AbortSignal): Promise<number> {
  if (stop.aborted) return Promise.resolve(1)
  const options = ['--test', '--test-concurrency=2', '--test-reporter=spec', `--test-timeout=${FILE_DEADLINE_MS}`]
  const child = spawn(process.execPath, [...options, ...files], {
    cwd: PROJECT,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  const onStop = () => {
    signalGroup(child, 'SIGTERM')
    setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS).unref()
  }
  stop.addEventListener('abort', onStop, { once: true })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  process.kill(-child.pid, signal)
}

async function withDatabase(run: (url: string) => Promise<number>): Promise<number> {
  const given = process.env.WINDLASS_TEST_DATABASE_URL
  if (given) return run(given)
  const server = await startTestServer()
  try {
    return await run(server.url)
  } finally {
    await server.stop()
  }
}

/** Ends what carries our mark; answers whether there was anything. */
async function sweep(patienceMs: number): Promise<boolean> {
  if (unsupported) {
    console.log(`Not looked for processes left behind: ${unsupported}.`)
    return false
  }
  const found = await leftovers(mark, patienceMs)
  if (found.length === 0) return false
  console.error('Left running by the tests and ended now; the test that starts a process has to end it:')
  for (const { pid, command } of found) console.error(`  ${pid}  ${command}`)
  endLeftovers(found)
  return true
}

/** Aborts when the run is interrupted or takes too long; `code` is then what to exit with. */
function stopSwitch() {
  const controller = new AbortController()
  const stopping = { signal: controller.signal, code: 0 }
  const stop = (code: number, why: string) => {
    if (controller.signal.aborted) return
    stopping.code = code
    console.error(`\n${why}: stopping the tests`)
    controller.abort()
  }
  for (const [signal, code] of Object.entries(EXIT_ON_SIGNAL)) process.on(signal, () => stop(code, signal))
  setTimeout(() => stop(1, `${RUN_DEADLINE_MS / 60_000} minutes are over`), RUN_DEADLINE_MS).unref()
  return stopping
}

async function main(filters: readonly string[]): Promise<number> {
  const files = wanted(filters)
  if (files.length === 0) {
    console.error(`No test file has ${filters.map((f) => `"${f}"`).join(' or ')} in its path. Name a part of one.`)
    return 1
  }
  const stopping = stopSwitch()
  const temporary = makeTemporaryFolder()
  // For the shared PostgreSQL too, which starts in this process.
  process.env.TMPDIR = temporary
  try {
    const code = await withDatabase((url) =>
      runFiles(files, { ...process.env, WINDLASS_TEST_RUN: mark, WINDLASS_TEST_DATABASE_URL: url }, stopping.signal),
    )
    const isLeftOver = await sweep(stopping.signal.aborted ? 0 : LEFTOVER_PATIENCE_MS)
    return stopping.code || code || (isLeftOver ? 1 : 0)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

process.exitCode = await main(process.argv.slice(2))
