// `npm test` runs the test files of its tier, `npm test -- cancel` those with `cancel` in their path; `npm run
// test:storm` runs the storms: with `--minutes 12` those that play rounds play for about so long, and `--shard 2/3` is
// the second third of them. With `--again` up to three red files are executed once more, alone, and named when that is
// green. One PostgreSQL serves them all; what they leave running is a failure.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { appendFileSync, chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { TEST_CLI } from '@windlass/shared/test/_kit/test-run.ts'
import { startTestServer } from '../../coordinator/test/_kit/database.ts'
import { stripTypes } from '../start/strip.ts'
import { findingsText, worthAgain } from './again.ts'
import { listOf, type Notes, PROCESSES, readNotes } from './file-seconds.ts'
import { endLeftovers, leftovers, unsupported } from './leftovers.ts'
import { packagedCli } from './packaged-cli.ts'
import { PROJECT, sourceFiles } from './source-files.ts'
import { readShard, shardOf } from './shards.ts'
import { inProcesses, pathsOf } from './test-groups.ts'
import { notFound, testFiles, type Tier, TIERS } from './tiers.ts'

/**
 * Files that run at once. The smallest machine that we test on has two cores, and many files wait for a clock; with
 * four storms at once 18 processes wait for a core.
 */
const LANES = 3
const REPORTER = path.join(import.meta.dirname, 'file-seconds.ts')
const WHOLE_FILE = path.join(import.meta.dirname, 'whole-file.mjs')
/** Kept from run to run, and removed by `npm ci`. */
const CACHE = path.join(PROJECT, 'node_modules/.cache/windlass-tests')
/** What the reporter writes, in the folder of temporary files. */
const NOTES = 'file-results.jsonl'
/** They ask for as many rounds, or for rounds as large, as somebody wants to wait for. */
const IS_LONG = Boolean(process.env.WINDLASS_TEST_ROUNDS ?? process.env.WINDLASS_TEST_TIMES)
/**
 * Against an endless wait only: a busy machine takes several times as long as an idle one. A process that executes
 * several files in turn has twice as long as a file.
 */
const FILE_DEADLINE_MS: Record<Tier, number> = { test: 600_000, storm: 3_600_000 }
const RUN_DEADLINE_MS: Record<Tier, number> = { test: 40 * 60_000, storm: 3 * 3_600_000 }
// The time that the test runner has to end its own children when it is interrupted.
const GRACE_MS = 3_000
// A process that was told to end at the end of a test may need a moment.
const LEFTOVER_PATIENCE_MS = 2_000
const EXIT_ON_SIGNAL = { SIGINT: 130, SIGTERM: 143 } as const

/** Marks all that this run starts: as a variable, and as the name of the folder that temporary files go to. */
const mark = `windlass-test-${randomBytes(4).toString('hex')}`

function makeTemporaryFolder(): string {
  const folder = path.join(tmpdir(), mark)
  mkdirSync(folder)
  // Open to everybody like the folder it stands in: PostgreSQL and some tests run as another user.
  chmodSync(folder, 0o1777)
  return folder
}

interface Run {
  readonly tier: Tier
  readonly files: readonly string[]
  /** How long a storm is to take in all; as long as its rounds take without it. */
  readonly minutes: number | undefined
  readonly isAgain: boolean
}

/** Average duration of a file without rounds, where three run at once on two cores (measured: 10 to 290 s). */
const STEADY_MS = 55_000
const LEAST_BUDGET_MS = 20_000

const textOf = (file: string) => readFileSync(path.join(PROJECT, file), 'utf8')

/**
 * Half of what tests cost would be the loading of TypeScript, by 340 test files and 1,000 processes that they start: it
 * is stripped of its types once, and what Node compiles of it is kept.
 */
async function fastLoading(folder: string): Promise<NodeJS.ProcessEnv> {
  const [flag, hook] = await stripTypes(path.join(CACHE, 'stripped'), sourceFiles(PROJECT, '.ts'))
  return {
    [TEST_CLI]: await packagedCli(path.join(folder, 'cli')),
    NODE_OPTIONS: [process.env.NODE_OPTIONS, `${flag}=${hook}`].filter(Boolean).join(' '),
    NODE_COMPILE_CACHE: path.join(CACHE, 'compiled'),
  }
}

/** Storms that play rounds share the time that those without rounds leave. */
function settingsOf({ tier, files, minutes }: Run): NodeJS.ProcessEnv {
  const playing = files.filter((file) => textOf(file).includes('rounds({')).length
  const rest = (minutes ?? 0) * 60_000 * LANES - (files.length - playing) * STEADY_MS
  const budgetMs = minutes === undefined ? undefined : Math.max(LEAST_BUDGET_MS, Math.ceil(rest / Math.max(1, playing)))
  // Programs of tests read and write files of root.
  const users = { WINDLASS_AGENT_RUN_UIDS: 'off' }
  return {
    WINDLASS_TEST_TIER: tier,
    ...users,
    ...(budgetMs !== undefined && { WINDLASS_TEST_BUDGET_MS: String(budgetMs) }),
  }
}

/**
 * Runs the files; answers with the exit code. The runner leads a process group of its own, so that a stop reaches all
 * of it.
 */
function runFiles({ tier, files }: Run, env: NodeJS.ProcessEnv, stop: AbortSignal, folder: string): Promise<number> {
  if (stop.aborted) return Promise.resolve(1)
  const processes = inProcesses(files, folder, FILE_DEADLINE_MS[tier])
  const list = path.join(folder, 'processes.json')
  writeFileSync(list, JSON.stringify(processes))
  const name = process.env.WINDLASS_TEST_NAME
  const options = [
    '--disable-warning=ExperimentalWarning',
    '--import',
    pathToFileURL(WHOLE_FILE).href,
    '--test',
    `--test-concurrency=${LANES}`,
    `--test-timeout=${2 * FILE_DEADLINE_MS[tier]}`,
    ...(name ? [`--test-name-pattern=^${name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`] : []),
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${REPORTER}`,
    `--test-reporter-destination=${path.join(folder, NOTES)}`,
  ]
  const child = spawn(process.execPath, [...options, ...pathsOf(processes)], {
    cwd: PROJECT,
    env: { ...env, [PROCESSES]: list },
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
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // It has ended, and we have not been told yet.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

type Outcome = { readonly isRed: boolean; readonly notes: Notes }

async function runOnce(run: Run, env: NodeJS.ProcessEnv, stop: AbortSignal, folder: string): Promise<Outcome> {
  rmSync(path.join(folder, NOTES), { force: true })
  const code = await runFiles(run, env, stop, folder)
  const notes = readNotes(path.join(folder, NOTES))
  const { results, executed, hasFailed } = notes
  console.log(listOf(results, run.files))
  const isEmpty = executed === 0
  if (isEmpty) console.error('No test was executed: WINDLASS_TEST_NAME has to be the whole name of a test.')
  return { isRed: code !== 0 || hasFailed || isEmpty || results.length < run.files.length, notes }
}

/**
 * The output names the files that were red, and why: they need a look, also where they are green alone. The same goes
 * into the file that WINDLASS_TEST_FINDINGS names, for whoever runs several of us.
 */
async function isRedAgain(run: Run, { failures }: Notes, rest: [NodeJS.ProcessEnv, AbortSignal, string]) {
  let isRed = true
  if (run.files.length > 0) {
    console.log(`\nRed, and executed once more, alone: ${run.files.join(', ')}`)
    ;({ isRed } = await runOnce(run, ...rest))
  }
  const text = findingsText(failures, run.files, isRed)
  console.log(text)
  if (process.env.WINDLASS_TEST_FINDINGS) appendFileSync(process.env.WINDLASS_TEST_FINDINGS, `${text}\n`)
  return isRed
}

async function withDatabase<T>(run: (url: string) => Promise<T>): Promise<T> {
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
function stopSwitch(tier: Tier) {
  const controller = new AbortController()
  const stopping = { signal: controller.signal, code: 0 }
  const stop = (code: number, why: string) => {
    if (controller.signal.aborted) return
    stopping.code = code
    console.error(`\n${why}: stopping the tests`)
    controller.abort()
  }
  for (const [signal, code] of Object.entries(EXIT_ON_SIGNAL)) process.on(signal, () => stop(code, signal))
  const deadlineMs = IS_LONG ? RUN_DEADLINE_MS.storm : RUN_DEADLINE_MS[tier]
  setTimeout(() => stop(1, `${deadlineMs / 60_000} minutes are over`), deadlineMs).unref()
  return stopping
}

/** What was asked for on the command line; a sentence when it cannot be. */
function readRun(args: string[]): Run | string {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      tier: { type: 'string', default: TIERS[0] },
      minutes: { type: 'string' },
      shard: { type: 'string', default: '1/1' },
      again: { type: 'boolean', default: false },
    },
  })
  const tier = TIERS.find((each) => each === values.tier)
  if (!tier) return `--tier is one of ${TIERS.join(', ')}, not ${values.tier}`
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
  if (minutes !== undefined && !(minutes > 0 && minutes <= 600))
    return `--minutes is a number above 0 and up to 600, not ${values.minutes}`
  if (minutes !== undefined && tier !== 'storm') return '--minutes is for storms: npm run test:storm -- --minutes 12'
  const shard = readShard(values.shard)
  if (!shard) return `--shard is the number of a part and how many there are, as in 2/3, not ${values.shard}`
  const all = testFiles(tier, positionals)
  if (all.length === 0) return notFound(tier, positionals)
  const files = shardOf(all, shard)
  if (files.length === 0) return `There are only ${all.length} test files, so part ${values.shard} has none of them`
  return { tier, files, minutes, isAgain: values.again }
}

async function main(args: string[]): Promise<number> {
  const run = readRun(args)
  if (typeof run === 'string') {
    console.error(run)
    return 1
  }
  const stopping = stopSwitch(run.tier)
  const temporary = makeTemporaryFolder()
  // For the shared PostgreSQL too, which starts in this process.
  process.env.TMPDIR = temporary
  try {
    const isRed = await withDatabase(async (url) => {
      const own = { WINDLASS_TEST_RUN: mark, WINDLASS_TEST_DATABASE_URL: url }
      const env = { ...process.env, ...(await fastLoading(temporary)), ...settingsOf(run), ...own }
      const outcome = await runOnce(run, env, stopping.signal, temporary)
      if (!outcome.isRed || !run.isAgain || stopping.signal.aborted) return outcome.isRed
      const again = { ...run, files: worthAgain(outcome.notes, run.files, textOf) }
      return isRedAgain(again, outcome.notes, [env, stopping.signal, temporary])
    })
    const isLeftOver = await sweep(stopping.signal.aborted ? 0 : LEFTOVER_PATIENCE_MS)
    return stopping.code || (isLeftOver || isRed ? 1 : 0)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

process.exitCode = await main(process.argv.slice(2))
