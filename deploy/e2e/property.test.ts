// Generated programs, some of them at once, on two agents of which one gives up every process that waits. In every
// second round both agents are killed now and then. WINDLASS_TEST_SEED=<number> repeats programs and schedule,
// WINDLASS_TEST_PROGRAM=<key> one program.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { isFinal, RUN_STATUSES, type Run } from '@windlass/shared/model/run.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Input, Node } from './programs/durable/interpreter/ast.ts'
import { ensurePool, startAgent, type TestAgent } from './_kit/agents.ts'
import { arbitraryProgram } from './_kit/arbitrary-program.ts'
import { ALWAYS_REPLAY, allRuns, metric, outputOf, SHORT } from './_kit/durable.ts'
import { fileInstance } from './_kit/file-instance.ts'
import { patiently, responder } from './_kit/responder.ts'
import { amount, rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { deploy, programFiles, wholeLog } from './_kit/runs.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { notesOf, wrongIn } from './_kit/story.ts'
import { until } from './_kit/until.ts'

/** Programs of a round, which run at once. */
const PROGRAMS = amount({ test: 12, storm: 60 })
const CLIENTS = 8
const KILLS = 2
const KILL_EVERY_MS = 3000
/** A program that is repeated alone is over sooner. */
const KILL_ONE_EVERY_MS = 400
const SETTLED_MS = 220_000
const SLOTS = 6
const SHOWN = 5
/** Name of the pool and of the interpreter there. */
const POOL = 'property'
const UNFINISHED = RUN_STATUSES.filter((status) => !isFinal(status))

const FILE = import.meta.filename
const seed = chosenSeed()
const only = process.env.WINDLASS_TEST_PROGRAM
const { current, database } = fileInstance({
  programs: [],
  env: { WINDLASS_AGENT_SPARES: '0', ...SHORT, WINDLASS_DATABASE_CONNECTIONS: '20' },
  onceUp,
  beforeStop: async () => void (await Promise.all(agents.map((agent) => agent.stop()))),
})
const agents: TestAgent[] = []
const blocked = new Map<string, string>()
let folder = ''

interface Case {
  key: string
  isKilled: boolean
  program: Node
  run: string
}

async function onceUp(): Promise<void> {
  console.log(`seed ${seed}; the same programs: ${repeated(FILE, { SEED: seed })}`)
  const { client } = current()
  await ensurePool(client, POOL)
  for (const each of [{ name: 'keeps' }, { name: 'gives-up', env: ALWAYS_REPLAY }]) {
    agents.push(await startAgent(current(), { ...each, pool: POOL, slots: SLOTS }))
  }
  const descriptor = { slug: POOL, pool: POOL, process: 'reuse', timeout: '5m', retries: { crash: 100 } }
  await deploy(client, programFiles('durable/interpreter', descriptor))
}

test('every program comes to what it would without an interruption, also while agents are killed', async (t) => {
  for (const round of rounds({ test: 2, storm: 16 })) {
    const cases = only ? [{ ...readKey(only), run: '' }] : sampled(round)
    folder = join(current().home, `notes-${round}`)
    mkdirSync(folder)
    t.diagnostic(await comesToWhatItWould(cases, randomOf(seed + round)))
  }
})

/** Answers with what there was to do. */
async function comesToWhatItWould(cases: Case[], random: Random): Promise<string> {
  const answering = responder(current().client, random)
  const killing = new AbortController()
  const kills = cases.some(({ isKilled }) => isKilled) ? KILLS : 0
  const killer = killNowAndThen(random, { kills, everyMs: only ? KILL_ONE_EVERY_MS : KILL_EVERY_MS }, killing.signal)
  let questions: number
  try {
    await inParallel(cases, async (each) => void (each.run = await begun(each)))
    await allEnded()
  } finally {
    killing.abort()
    await killer
    questions = await answering.stop()
  }

  const wrong: Wrong[] = []
  let attempts = 0
  await inParallel(cases, async (each) => {
    const { run, problems } = await problemsOf(each, kills)
    attempts += run.attempt - 1
    if (problems.length > 0) wrong.push({ ...each, text: JSON.stringify(each.program), problems })
  })
  assert.equal(wrong.length + blocked.size, 0, reportOf(wrong, cases.length))
  assert.equal(await metric(current().access.url, 'windlass_orphans_total'), 0)
  return `seed ${seed}: ${cases.length} programs, ${questions} questions, ${attempts} attempts lost`
}

interface Wrong extends Case {
  text: string
  problems: string[]
}

function reportOf(wrong: Wrong[], all: number): string {
  const smallest = wrong.toSorted((a, b) => a.text.length - b.text.length).slice(0, SHOWN)
  const programs = smallest.map(({ key, text, problems }) =>
    [`${key}: ${problems.join('\n')}`, text, repeatCommand(key)].join('\n'),
  )
  const log = current().process.stderr().split('\n')
  const errors = log.filter((line) => line.includes('"level":"error"')).slice(-SHOWN)
  return [
    `seed ${seed}: ${wrong.length} of ${all} programs went wrong. The smallest:`,
    ...programs,
    ...blocked.values(),
    ...errors,
  ].join('\n\n')
}

function repeatCommand(key: string): string {
  return `Exactly this program, 20 times: ${repeated(FILE, { SEED: seed, PROGRAM: key, ROUNDS: 20 })}`
}

function sampled(round: number): Case[] {
  const kind = round % 2 === 0 ? 'calm' : 'killed'
  return Array.from({ length: PROGRAMS }, (_, n) => ({ ...readKey(`${kind}-${round}-${n}`), run: '' }))
}

/**
 * The program that a key such as `killed-3-17` stands for under the seed of this test, however many others there are.
 */
function readKey(key: string): Omit<Case, 'run'> {
  const [, kind, round, n] = /^(calm|killed)-(\d+)-(\d+)$/.exec(key) ?? []
  if (!kind) throw new Error(`WINDLASS_TEST_PROGRAM is a key such as killed-3-17, not ${key}`)
  const isKilled = kind === 'killed'
  const arbitrary = arbitraryProgram({ key, isKilled })
  const [program] = fc.sample(arbitrary, {
    numRuns: 1,
    seed: (seed * 1_000_003 + Number(round) * 1009 + Number(n)) | 0,
  })
  return { key, isKilled, program: program! }
}

async function begun({ key, program }: Case): Promise<string> {
  const input: Input = { program, key, folder }
  return (await current().client.runs.trigger({ workflow: POOL, input })).run.id
}

interface Killing {
  kills: number
  /** Average time between two kills. */
  everyMs: number
}

/** Agents one after the other, at moments that the seed chooses. */
async function killNowAndThen(random: Random, { kills, everyMs }: Killing, stop: AbortSignal): Promise<void> {
  for (let kill = 0; kill < kills; kill++) {
    await pause(random.between(everyMs / 2, everyMs * 1.5), stop)
    if (stop.aborted) return
    const victim = random.pick(agents)
    await victim.kill()
    await victim.start()
  }
}

/** It does not end by itself. What it said goes into the report. */
async function endBlocked(run: Run): Promise<void> {
  const { db } = database()
  const journal = await db`
    select n, attempt, position, parent, kind, name, hash, occurrence, state, delivered, after, idle, completion
    from journal
    where run_id = ${run.id}
    order by n`
  const events = await wholeLog(current().client, run.id)
  const said = events.map(({ at, type, data }) => `${at} ${type} ${JSON.stringify(data)}`)
  const rows = journal.map((row) => JSON.stringify(row))
  blocked.set(run.id, [`${run.id} was blocked:`, ...said, ...rows].join('\n'))
  await patiently(() => current().client.runs.cancel({ run: run.id }))
}

async function allEnded(): Promise<void> {
  let open: Run[] = []
  const look = async () => {
    const found = await patiently(() => allRuns(current().client, { status: UNFINISHED }))
    if (found) open = found
    for (const run of open.filter((each) => each.blocked)) await endBlocked(run)
    return open.length === 0
  }
  const more = () =>
    `seed ${seed}; ${open.length} open: ${open
      .slice(0, 20)
      .map((run) => `${run.id} ${run.status} ${run.attempt}`)
      .join(', ')}`
  await until('the end of all runs', look, { ms: SETTLED_MS, more })
}

async function problemsOf({ key, program, run: id }: Case, kills: number): Promise<{ run: Run; problems: string[] }> {
  const { client } = current()
  const { run } = await client.runs.get({ run: id })
  const output = run.status === 'completed' ? await outputOf(client, id) : undefined
  const events = await wholeLog(client, id)
  const problems = wrongIn({ program, run, output, events, notes: notesOf(folder, key), kills })
  return { run, problems: problems.map((problem) => `${id}: ${problem}`) }
}

async function inParallel<T>(all: readonly T[], act: (each: T) => Promise<void>): Promise<void> {
  const left = [...all]
  const client = async () => {
    for (let each = left.shift(); each; each = left.shift()) await act(each)
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}
