// A drain at a random moment, while work is given out and the answers to polls are cut at random bytes.
// WINDLASS_TEST_ROUNDS=<number> makes that many trials, WINDLASS_TEST_SEED=<number> repeats their choices.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Runner } from '@windlass/shared/model/runner.ts'
import { claimsSeen, watchClaims } from '../_kit/claims.ts'
import { type Cluster, startCluster } from '../_kit/cluster.ts'
import { type LightAgent, lightAgent } from '../_kit/light-agents.ts'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { deploy } from '../_kit/runs.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { type Shaper, shaper } from '../_kit/shaper.ts'
import { until } from '../_kit/until.ts'

const SLOTS = 50
/** So many are executed when a drain comes. A busy machine may bring them more slowly than they end. */
const BUSY = 25
const QUEUED = 500
/** So long does a run execute. */
const TAKES_MS = [1500, 4500] as const
const CLIENTS = 16
const SETTINGS = {
  WINDLASS_OFFER_MS: '600',
  WINDLASS_SWEEP_MS: '100',
  WINDLASS_AMNESTY_MS: '0',
  WINDLASS_DATABASE_CONNECTIONS: '20',
}

/** It is never executed: the agents are simulated. */
const LIGHT = {
  'workflow.jsonc': JSON.stringify({ slug: 'light' }),
  'index.ts': 'export async function run(): Promise<null> {\n  return null\n}\n',
}

const seed = chosenSeed()
const lights: { light: LightAgent; way: Shaper }[] = []
let cluster: Cluster

before(async () => {
  console.log(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  cluster = await startCluster({ env: SETTINGS })
  await watchClaims(cluster.database)
  await deploy(cluster.client, LIGHT)
  const { runnerPools } = await cluster.client.pools.list({})
  for (const index of [0, 1]) {
    const { registrationToken } = await cluster.client.pools.createToken({ pool: runnerPools[0]!.id })
    const way = await shaper(cluster.urls[0]!)
    const options = { url: cluster.urls[0]!, pollUrl: way.url, token: registrationToken.token, slots: SLOTS }
    const light = await lightAgent({ ...options, random: randomOf(seed + index), takesMs: TAKES_MS })
    lights.push({ light, way })
  }
})

after(async () => {
  for (const { light, way } of lights) {
    light.close()
    await way.close()
  }
  await cluster?.stop()
})

test('from the epoch of a drain on nothing is given out, nothing is burned, and `drained` is true', async (t) => {
  const trials: Trial[] = []
  for (const n of rounds({ test: 2, storm: 20 })) {
    trials.push(await trial(randomOf(seed + n), lights[n % lights.length]!))
  }
  for (const { light } of lights) light.hurry()
  const { db } = cluster.database
  const open = async () =>
    (await db<{ n: number }[]>`select count(*)::int as n from runs where finished_at is null`)[0]!.n
  await until('the end of all runs', async () => (await open()) === 0)
  const [sums] = await db<{ runs: number; burned: number; completed: number }[]>`
    select count(*)::int as runs, count(*) filter (where attempt > 1)::int as burned,
      count(*) filter (where status = 'completed')::int as completed
    from runs`
  assert.deepEqual(sums, { runs: sums!.runs, burned: 0, completed: sums!.runs })
  assert.equal(await cluster.metric('windlass_orphans_total'), 0)
  const atDrain = trials.map(({ executing }) => executing)
  t.diagnostic(
    `${trials.length} trials, ${trials.filter(({ cuts }) => cuts > 0).length} of them with ${trials.reduce((sum, { cuts }) => sum + cuts, 0)} polls cut; ` +
      `${Math.min(...atDrain)} to ${Math.max(...atDrain)} runs executed at the drain, ${sums?.runs} in all, none in a second attempt`,
  )
})

interface Trial {
  executing: number
  cuts: number
}

async function trial(random: Random, { light, way }: { light: LightAgent; way: Shaper }): Promise<Trial> {
  const { client, database } = cluster
  const runner = light.agent.runner
  await until(`${BUSY} runs to execute`, async () => {
    // Each time: where a slow machine takes long, those that waited at first may have ended.
    await topUp()
    return light.executing().size >= BUSY
  })
  const before = way.cuts()
  if (random.between(1, 3) > 1) way.cut(() => random.between(1, 3000))
  await wait(random.between(0, 300))
  const { runner: draining } = await client.runners.drain({ runner, reason: 'trial', deadlineMs: 60_000 })
  const seen = await claimsSeen(database, runner)
  const executing = light.executing().size
  assert.ok(['draining', 'drained'].includes(draining.intake.state), draining.intake.state)
  if (random.next() < 0.5) light.hurry()
  const drained = await isDrained(runner)
  assert.deepEqual([...light.executing()], [], 'drained, and yet it executes')
  assert.deepEqual(drained.live, { offered: 0, executing: 0, parked: 0 })
  assert.equal(drained.intake.epoch, draining.intake.epoch)
  way.cut(undefined)
  assert.deepEqual(await claimsSeen(database, runner), { all: seen.all, forbidden: 0 })
  light.calm()
  await client.runners.resume({ runner })
  return { executing, cuts: way.cuts() - before }
}

async function isDrained(runner: string): Promise<Runner> {
  let last: Runner | undefined
  const look = async () => {
    last = (await cluster.client.runners.get({ runner })).runner
    return last.intake.state === 'drained' && last
  }
  return until('drained', look, { more: () => JSON.stringify([last?.intake, last?.live]) })
}

/** So many wait as the queue is to hold, besides what is executed meanwhile. */
async function topUp(): Promise<void> {
  const { db } = cluster.database
  const [row] = await db<{ n: number }[]>`select count(*)::int as n from run_queue`
  let missing = QUEUED + 2 * SLOTS - row!.n
  const one = async () => {
    while (missing-- > 0) await cluster.client.runs.trigger({ workflow: 'light' })
  }
  await Promise.all(Array.from({ length: CLIENTS }, one))
}
