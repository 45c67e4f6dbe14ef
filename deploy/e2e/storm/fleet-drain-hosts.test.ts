// Drains of real agents on hosts of their own, while every connection of theirs is cut at random bytes. What programs note by
// themselves says whether a host that counts as drained executes anything. WINDLASS_TEST_ROUNDS=<number> makes that many trials.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { claimsSeen, watchClaims } from '../_kit/claims.ts'
import { type Fleet, startFleet } from '../_kit/fleet.ts'
import { familiesEnded, judge } from '../_kit/fleet-rules.ts'
import type { FleetHost } from '../_kit/hosts.ts'
import { ledgerOf } from '../_kit/ledger.ts'
import { noHosts } from '../_kit/netns.ts'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { until } from '../_kit/until.ts'
import type { Input, Part } from '../programs/fleet/index.ts'

const RUNS = 24
const SLOTS = 6
const DRAINED_MS = 60_000
const ENDED_MS = 120_000
const SETTINGS = { WINDLASS_OFFER_MS: '3000', WINDLASS_SWEEP_MS: '200', WINDLASS_AMNESTY_MS: '0' }

const skip = noHosts() ?? false
const seed = chosenSeed()
let fleet: Fleet

before(async () => {
  if (skip) return
  console.log(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  const hosts = [
    { name: 'anna', slots: SLOTS },
    { name: 'bert', slots: SLOTS },
  ]
  fleet = await startFleet({ env: SETTINGS, hosts, workflows: { drained: 'reuse' }, crashes: 0 })
  await watchClaims(fleet.cluster.database)
})

after(() => fleet?.stop())

test('a drained host executes nothing, was given nothing, and its runs have lost no attempt', { skip }, async (t) => {
  const ids: string[] = []
  const times: number[] = []
  let cuts = 0
  for (const n of rounds({ test: 2, storm: 12 })) {
    const host = fleet.hosts[n % fleet.hosts.length]!
    const random = randomOf(seed + n)
    ids.push(...(await triggerAll(random)))
    const before = host.way.cuts()
    times.push(await drainAndResume(host, { random, ids }))
    cuts += host.way.cuts() - before
  }
  const runs = await familiesEnded(fleet.client, ids, ENDED_MS)
  const judged = await Promise.all(runs.map((run) => judge(fleet.client, run)))
  assert.deepEqual(
    judged.flatMap(({ wrong }) => wrong),
    [],
  )
  assert.deepEqual(
    runs.filter(({ attempt }) => attempt > 1).map(({ id }) => id),
    [],
  )
  t.diagnostic(
    `${times.length} trials, ${cuts} connections cut, ${runs.length} runs; drained after ${Math.round(Math.max(...times))} ms at the latest`,
  )
})

async function triggerAll(random: Random): Promise<string[]> {
  const one = async () => {
    const input: Input = { folder: fleet.folder, parts: partsOf(random) }
    return (await fleet.client.runs.trigger({ workflow: 'drained', input })).run.id
  }
  return Promise.all(Array.from({ length: RUNS }, one))
}

function partsOf(random: Random): Part[] {
  const part: Part = { lines: 3, takesMs: random.between(50, 700) }
  const asleep: Part = { ...part, next: { sleepMs: random.between(500, 5000) } }
  return random.pick<Part[]>([[part, part], [part], [asleep, part]])
}

/** Answers how long it took until nothing was left on it. */
async function drainAndResume(host: FleetHost, { random, ids }: { random: Random; ids: string[] }): Promise<number> {
  const { client, cluster } = fleet
  const runner = (await client.runners.list({})).runners.find(({ name }) => name === host.name)!.id
  await wait(random.between(0, 1500))
  if (random.between(1, 3) > 1) host.way.cut(() => random.between(1, 1500))
  await wait(random.between(0, 300))
  const { runner: draining } = await client.runners.drain({ runner, reason: 'trial' })
  const since = performance.now()
  const seen = await claimsSeen(cluster.database, runner)
  await wait(random.between(0, 500))
  host.way.cut(undefined)
  let last = ''
  const look = async () => {
    const { runner: now } = await client.runners.get({ runner })
    last = JSON.stringify([now.intake, now.live, now.currentRuns])
    return now.intake.state === 'drained' && now
  }
  const drained = await until(`${host.name} to be drained`, look, { ms: DRAINED_MS, more: () => last })
  const drainedAt = Number(process.hrtime.bigint() / 1000n) / 1000
  assert.equal(drained.intake.epoch, draining.intake.epoch)
  // What executes notes it every 20 ms.
  await wait(200)
  const late = ids.filter((id) =>
    ledgerOf(fleet.folder, id).some(({ at, host: on }) => on === host.net.address && at > drainedAt),
  )
  assert.deepEqual(late, [], `seed ${seed}: executed on ${host.name} after it was drained`)
  assert.deepEqual(await claimsSeen(cluster.database, runner), { all: seen.all, forbidden: 0 })
  await client.runners.resume({ runner })
  return performance.now() - since
}
