// An agent is killed and started again: what it executed goes on, in the same process and attempt.
import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Run } from '@windlass/shared/model/run.ts'
import { type Client, createClient } from 'windlass/client'
import { startAgent, type TestAgent } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { deploy, ended, get, hasSaid, programFiles, textsOf, wholeLog } from '../_kit/runs.ts'
import { chosenSeed, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { until } from '../_kit/until.ts'

/** Of the processes whose agent does not come back. A starved machine has taken 29 s to start one that was killed. */
const FENCE_MS = 60_000
const LEASE_MS = 70_000
const SECRET = 'correct-horse-battery'

const { current } = fileInstance({
  programs: [],
  env: {
    WINDLASS_HEARTBEAT_MS: '500',
    WINDLASS_FENCE_MS: String(FENCE_MS),
    WINDLASS_LEASE_MS: String(LEASE_MS),
    WINDLASS_AMNESTY_MS: '0',
    WINDLASS_SWEEP_MS: '300',
  },
})

/** Whose session may do what a key may not. */
function operator(): Client {
  const access = JSON.parse(readFileSync(join(current().home, 'cli.json'), 'utf8')) as Record<string, string>
  return createClient({ url: access['url']!, org: access['org']!, apiKey: access['session']! })
}

interface Ask {
  lines: number
  ms: number
  sleepMs?: number
  others?: boolean
}

/** A run of `counts` on an agent of its own. */
interface More {
  descriptor?: object
  environment?: string
  env?: Record<string, string>
}

async function counting(name: string, ask: Ask, more: More = {}) {
  const instance = current()
  const agent = await startAgent(instance, { name, pool: name, env: { WINDLASS_LOG_LEVEL: 'debug', ...more.env } })
  await deploy(instance.client, programFiles('counts', { slug: name, pool: name, ...more.descriptor }))
  const notes = join(instance.home, `${name}.notes`)
  writeFileSync(notes, '')
  chmodSync(notes, 0o666)
  const { environment } = more
  const asked = { workflow: name, input: { ...ask, notes }, ...(environment !== undefined && { environment }) }
  const run = (await instance.client.runs.trigger(asked)).run.id
  await hasSaid(instance.client, run, 'log.stdout', 'line 5')
  return { agent, run, notes }
}

const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}`)
const stepsIn = (notes: string) => readFileSync(notes, 'utf8').trimEnd().split('\n').map(Number)
const tens = (count: number) => Array.from({ length: Math.floor(count / 10) }, (_, n) => (n + 1) * 10)

/** Answers with the milliseconds it took. */
async function killAndStart(agent: TestAgent): Promise<number> {
  const killedAt = performance.now()
  await agent.kill()
  await agent.start()
  return performance.now() - killedAt
}

/** A program that is short is not worth it; and how far one was heard is noted ten times a second. */
async function isRecorded(agent: TestAgent): Promise<void> {
  await agent.process().says('run.kept')
  await delay(400)
}

async function isWhole(run: Run, count: number, notes: string): Promise<void> {
  assert.equal(run.status, 'completed', run.error?.message)
  assert.equal(run.attempt, 1, run.lost?.reason)
  assert.deepEqual(textsOf(await wholeLog(current().client, run.id)), lines(count))
  assert.deepEqual(stepsIn(notes), tens(count), 'no step was executed twice')
  const { output } = (await current().client.runs.output({ run: run.id })) as {
    output: { sum: number; pids: number[] }
  }
  assert.equal(
    output.sum,
    tens(count).reduce((sum, n) => sum + n, 0),
  )
  assert.equal(output.pids.length, 1, 'it is one process')
}

const seed = chosenSeed()

// Each has an agent and a pool of its own.
describe('an agent that is killed and started again', { concurrency: 3 }, () => {
  test(`kill -9 of the agent at any moment: no line and no step is lost or doubled (seed ${seed})`, async () => {
    const random = randomOf(seed)
    const { agent, run, notes } = await counting('killed', { lines: 600, ms: 20 })
    for (let kills = 0; kills < 4; kills++) {
      await isRecorded(agent)
      await delay(random.between(0, 700))
      await killAndStart(agent)
      await agent.process().says('run.taken-back')
    }
    await isWhole(await ended(current().client, run), 600, notes)
    await agent.stop()
  })

  test('a program that only waits is woken by the agent that took it back', async () => {
    const { agent, run, notes } = await counting('waits', { lines: 60, ms: 10, sleepMs: 3_000 })
    const sleeping = async () => (await get(current().client, run)).status === 'sleeping'
    await isRecorded(agent)
    await until('it sleeps', sleeping)
    await killAndStart(agent)
    await isWhole(await ended(current().client, run), 60, notes)
    await agent.stop()
  })

  const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root has users to give' }

  test('one that executes as a user of its own finds the agent, and nothing else of it', asRoot, async () => {
    const { home } = current()
    // On the way to what is the program's own others may pass; nothing else changes.
    for (const folder of [home, dirname(home)]) chmodSync(folder, (statSync(folder).mode & 0o7777) | 0o011)
    const env = { WINDLASS_AGENT_RUN_UIDS: '790000-790009' }
    const { agent, run } = await counting('user', { lines: 200, ms: 20 }, { env })
    await isRecorded(agent)
    await killAndStart(agent)
    const found = await ended(current().client, run)
    assert.equal(found.attempt, 1, found.lost?.reason)
    assert.match(found.isolation ?? '', /own user/)
    assert.deepEqual(textsOf(await wholeLog(current().client, run)), lines(200))
    await agent.stop()
  })

  test('what it knew is hidden by the agent that took it back as well', async () => {
    const { client } = current()
    const { secrets } = operator()
    await client.environments.create({ name: 'hiding' })
    await secrets.set({ name: 'COUNTS_SECRET', value: SECRET, environment: 'hiding' })
    const { agent, run } = await counting('hides', { lines: 200, ms: 20 }, { environment: 'hiding' })
    await isRecorded(agent)
    // It is another one now, and the program has the old one.
    await secrets.set({ name: 'COUNTS_SECRET', value: 'another-one-altogether', environment: 'hiding' })
    await killAndStart(agent)
    const found = await ended(client, run)
    assert.equal(found.attempt, 1, found.lost?.reason)
    const log = await wholeLog(client, run)
    assert.deepEqual(
      textsOf(log),
      lines(200).map((line) => `${line} ***`),
    )
    assert.ok(!JSON.stringify(log).includes(SECRET))
    await agent.stop()
  })

  test('it is cancelled like any other', async () => {
    const { agent, run } = await counting('cancelled', { lines: 10_000, ms: 20 })
    await isRecorded(agent)
    await killAndStart(agent)
    await agent.process().says('run.taken-back')
    await current().client.runs.cancel({ run })
    const found = await ended(current().client, run)
    assert.deepEqual([found.status, found.attempt], ['cancelled', 1])
    await agent.stop()
  })

  test('its time goes on', async () => {
    const { agent, run } = await counting('overtime', { lines: 10_000, ms: 20 }, { descriptor: { timeout: '20s' } })
    await isRecorded(agent)
    await delay(14_000)
    const restartMs = await killAndStart(agent)
    const found = await ended(current().client, run, 90_000)
    assert.deepEqual([found.status, found.error?.code, found.attempt], ['failed', 'RUN_TIMED_OUT', 1])
    // Counted from the takeover it would be 34 s and the restart at least. The rest is room for a busy machine.
    assert.ok(found.computeMs < 33_000 + restartMs, `${found.computeMs} ms, ${restartMs} of them for the restart`)
    await agent.stop()
  })

  test('one that has started others begins anew: these are ended', async () => {
    const { agent, run } = await counting('parent', { lines: 100, ms: 20, others: true })
    await delay(1_500)
    await killAndStart(agent)
    const found = await ended(current().client, run)
    assert.deepEqual([found.status, found.attempt], ['completed', 2])
    await agent.stop()
  })

  test('one that was taken back a moment ago is taken back again', async () => {
    const { agent, run, notes } = await counting('twice', { lines: 200, ms: 20 })
    await isRecorded(agent)
    for (let kills = 0; kills < 3; kills++) {
      await killAndStart(agent)
      await agent.process().says('run.taken-back')
      await delay(200)
    }
    await isWhole(await ended(current().client, run), 200, notes)
    await agent.stop()
  })

  test('one to which no pipes can be laid is ended, and begins anew', async () => {
    const { agent, run } = await counting('unreachable', { lines: 100, ms: 20 })
    await isRecorded(agent)
    const { pid } = JSON.parse(recordsIn(agent)) as { pid: number }
    await agent.kill()
    const lives = join(current().home, 'unreachable', 'lives')
    const [record] = readdirSync(lives).filter((name) => name.endsWith('.json'))
    // Where the folder of the pipes would be.
    writeFileSync(join(lives, record!.replace('.json', '')), '')
    await agent.start()
    const found = await ended(current().client, run)
    assert.deepEqual([found.status, found.attempt], ['completed', 2])
    assert.ok(!isThere(pid))
    await agent.stop()
  })

  test('when no agent comes, it is dead before its lease is over, and begins anew elsewhere', async () => {
    const { agent, run } = await counting('orphan', { lines: 300, ms: 20 })
    await isRecorded(agent)
    const { pid } = JSON.parse(recordsIn(agent)) as { pid: number }
    await agent.kill()
    const other = await startAgent(current(), { name: 'orphan-2', pool: 'orphan' })
    await until('its process is gone', () => Promise.resolve(!isThere(pid)), { ms: LEASE_MS + 20_000 })
    assert.equal((await get(current().client, run)).attempt, 1, 'it is not given to another one as long as it may live')
    const found = await ended(current().client, run)
    assert.deepEqual([found.status, found.attempt], ['completed', 2])
    await other.stop()
  })
})

function recordsIn(agent: TestAgent): string {
  const line = agent
    .process()
    .stderr()
    .split('\n')
    .findLast((each) => each.includes('"run.kept"'))
  return line ?? '{}'
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
