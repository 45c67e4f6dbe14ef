// kill -9 of agent, coordinator and PostgreSQL while 200 runs are in flight. WINDLASS_TEST_SEED=<number> repeats a schedule;
// what the machine does in between is never the same twice.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import { ApiError } from 'windlass/client'
import { type Part, startPart } from '../../start/part.ts'
import { processesMarked } from '../../tools/leftovers.ts'
import { brokenRules } from '../_kit/chaos-rules.ts'
import { type Instance, makeHome, type PartName, startInstance } from '../_kit/instance.ts'
import { deploy, programFiles, wholeLog } from '../_kit/runs.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { inherited } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'
import type { Entry, Input } from '../programs/chaos/index.ts'

const RUNS = 200
const CLIENTS = 10
type Victim = PartName | 'second agent'
const KILLS: readonly Victim[] = (['agent', 'second agent', 'coordinator', 'postgres'] as const).flatMap((victim) => [
  victim,
  victim,
  victim,
])
const SETTLED_MS = 120_000

/** So short that every one of them is over many times, so long that a busy machine does not end them by itself. */
const SETTINGS = {
  WINDLASS_START_EXAMPLE: 'false',
  WINDLASS_AGENT_SLOTS: '8',
  WINDLASS_HEARTBEAT_MS: '300',
  WINDLASS_FENCE_MS: '4000',
  WINDLASS_LEASE_MS: '6000',
  WINDLASS_AMNESTY_MS: '1000',
  WINDLASS_OFFER_MS: '1500',
  WINDLASS_SWEEP_MS: '300',
}

const SORTS: readonly Omit<Input, 'folder'>[] = [
  { lines: 1, takesMs: 0 },
  { lines: 10, takesMs: 300 },
  { lines: 20, takesMs: 2500 },
  { lines: 200, takesMs: 600 },
]
const WORKFLOWS = ['chaos-fresh', 'chaos-reuse'] as const

/** What becomes of a part is in its log. */
const SILENT = { json: true, say: () => undefined, fail: () => undefined, answer: () => undefined }

interface Ask {
  workflow: string
  input: Input
}

const seed = chosenSeed()
const temp = makeHome()
let instance: Instance
let second: Part

before(async () => {
  console.log(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  instance = await startInstance({ home: temp.home, env: SETTINGS })
  second = await secondAgent(instance)
  for (const slug of WORKFLOWS) {
    const process = slug === 'chaos-reuse' ? 'reuse' : 'fresh'
    await deploy(instance.client, programFiles('chaos', { slug, process, timeout: '1m', retries: { crash: 20 } }))
  }
})

after(async () => {
  try {
    await second?.stop()
  } finally {
    temp.remove()
  }
})

/** On the same machine, and by its own folder another one: what one agent loses, the other may get. */
async function secondAgent({ client, access, home }: Instance): Promise<Part> {
  const { runnerPools } = await client.pools.list({})
  const { registrationToken } = await client.pools.createToken({ pool: runnerPools[0]!.id })
  const env = {
    ...inherited(),
    WINDLASS_URL: access.url,
    WINDLASS_AGENT_HOME: join(home, 'second'),
    WINDLASS_AGENT_TOKEN: registrationToken.token,
    WINDLASS_AGENT_NAME: 'second',
    WINDLASS_AGENT_STOP_MS: '10000',
    WINDLASS_AGENT_CONFIG: 'none',
    WINDLASS_AGENT_SLOTS: SETTINGS.WINDLASS_AGENT_SLOTS,
  }
  const logFile = join(home, 'second.log')
  return startPart({
    name: 'second agent',
    module: '@windlass/agent/main.ts',
    nodeArgs: [],
    env,
    logFile,
    tell: SILENT,
    stopMs: 15_000,
  })
}

test(
  'whatever is killed, every run that was answered ends exactly once and its log is whole',
  { timeout: 400_000 },
  async (t) => {
    const random = randomOf(seed)
    const folder = join(temp.home, 'diaries')
    mkdirSync(folder)
    const asks = Array.from({ length: RUNS }, (): Ask => ({
      workflow: random.pick(WORKFLOWS),
      input: { folder, ...random.pick(SORTS) },
    }))
    const killing = killOneAfterTheOther(random)
    const answered = await triggerAll(asks)
    await killing
    const runs = await allEnded()
    const missing = [...answered].filter((id) => !runs.some((run) => run.id === id))
    assert.deepEqual(missing, [], `seed ${seed}: answered with 201 and not there`)
    assert.equal(answered.size, RUNS)
    for (const run of runs) await tellsAWholeStory(run, folder)
    t.diagnostic(
      `${runs.length} runs, ${runs.length - answered.size} of them unanswered, ${lostAttempts(runs)} attempts lost`,
    )
    await second.stop()
    await instance.stop()
  },
)

function lostAttempts(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + run.attempt - 1, 0)
}

/** In an order and at moments that the seed decides; each waits until its victim is there, or the next would hit nobody. */
async function killOneAfterTheOther(random: Random): Promise<void> {
  const victims = [...KILLS]
  while (victims.length > 0) {
    const [victim] = victims.splice(random.between(0, victims.length - 1), 1)
    await wait(random.between(50, 2000))
    const pid = await until(`a ${victim}`, () => pidOf(victim!), {
      ms: 30_000,
      more: () => instance.process.stderr().slice(-3000),
    })
    process.kill(pid, 'SIGKILL')
  }
}

async function pidOf(victim: Victim): Promise<number | undefined> {
  if (victim !== 'second agent') return instance.pidOf(victim)
  const pid = second.pid()
  return processesMarked(temp.home).some((each) => each.pid === pid) ? pid : undefined
}

/** Clients that want something done: what is not answered is asked again, and may then be there twice. */
async function triggerAll(asks: Ask[]): Promise<Set<string>> {
  const open = [...asks]
  const answered = new Set<string>()
  const client = async () => {
    for (let ask = open.shift(); ask; ask = open.shift()) {
      answered.add(await triggered(ask))
      // The first hundred all at once, the others while things break.
      if (answered.size > RUNS / 2) await wait(600)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return answered
}

function triggered(ask: Ask): Promise<string> {
  return until(
    `an answer to a trigger of ${ask.workflow}`,
    () => patiently(async () => (await instance.client.runs.trigger(ask)).run.id),
    { ms: 60_000 },
  )
}

/** Nothing while the service is away. A refusal is a failure of the test. */
async function patiently<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof ApiError && (error.status === 0 || error.status === 503)) return undefined
    throw error
  }
}

async function allEnded(): Promise<Run[]> {
  let open: Run[] = []
  const look = async () => {
    const runs = await patiently(allRuns)
    open = (runs ?? []).filter((run) => !isFinal(run.status))
    return runs && open.length === 0 && runs
  }
  const more = () =>
    `seed ${seed}; open: ${open.map((run) => `${run.id} ${run.status} ${run.attempt}`).join(', ')}\n${instance.process.stderr().slice(-6000)}`
  return until('the end of all runs', look, { ms: SETTLED_MS, more })
}

async function allRuns(): Promise<Run[]> {
  const found: Run[] = []
  for (let cursor: string | undefined; ;) {
    const page = await instance.client.runs.list({ limit: 100, ...(cursor && { cursor }) })
    found.push(...page.runs)
    if (page.nextCursor === null) return found
    cursor = page.nextCursor
  }
}

async function tellsAWholeStory(run: Run, folder: string): Promise<void> {
  const events = await wholeLog(instance.client, run.id)
  const { input } = await instance.client.runs.input({ run: run.id })
  const diary = readFileSync(join(folder, run.id), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  const broken = brokenRules({ run, events, diary, lines: (input as Input).lines })
  if (broken.length === 0) return
  const log = events.map((event) => `  ${event.cursor} ${event.type} ${JSON.stringify(event.data)}`).join('\n')
  const notes = diary.map((entry) => `  ${JSON.stringify(entry)}`).join('\n')
  assert.fail(`seed ${seed}, ${run.id}: ${broken.join('; ')}\nits log:\n${log}\nits diary:\n${notes}`)
}
