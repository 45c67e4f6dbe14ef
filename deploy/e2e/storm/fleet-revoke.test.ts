// What becomes of a runner that is revoked: how soon its tokens are dead at every coordinator, and what becomes of its runs.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@windlass/agent/exit-codes.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { percentile } from '../../load/measure.ts'
import { type SimulatedAgent, startSimulatedAgent } from '../../load/simulated-agent.ts'
import { type Cluster, SCALED, startCluster } from '../_kit/cluster.ts'
import { type Fleet, startFleet } from '../_kit/fleet.ts'
import { familiesEnded, judge } from '../_kit/fleet-rules.ts'
import type { FleetHost } from '../_kit/hosts.ts'
import { noHosts } from '../_kit/netns.ts'
import { deploy, get, programFiles } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'
import type { Input } from '../programs/fleet/index.ts'

const TRIALS = 8
const DEAD_WITHIN_MS = 5000
const POLL_MS = 25

let cluster: Cluster

before(async () => {
  cluster = await startCluster({ coordinators: 2, env: { WINDLASS_AMNESTY_MS: '0' } })
  await deploy(cluster.client, programFiles('healthy', { slug: 'held', retries: { crash: 0 } }))
})

after(() => cluster?.stop())

test(
  'the tokens of a revoked runner and of its runs are dead at every coordinator within 5 s',
  { timeout: 120_000 },
  async (t) => {
    const times: number[] = []
    for (let n = 0; n < TRIALS; n++) times.push(...(await revokedAfter(n)))
    const [p50, most] = [percentile(times, 0.5), Math.max(...times)].map(Math.round)
    t.diagnostic(
      `${TRIALS} trials, ${times.length} tokens at 2 coordinators: dead after ${p50} ms (p50), ${most} ms (longest)`,
    )
    assert.ok(most! < DEAD_WITHIN_MS, `a token served for ${most} ms`)
  },
)

interface Probe {
  /** Resolves when it is not refused, throws otherwise. */
  use: () => Promise<unknown>
  what: string
}

/** How long each of its tokens served at each of the coordinators, from the moment at which the revoke was asked for. */
async function revokedAfter(n: number): Promise<number[]> {
  const { run } = await cluster.client.runs.trigger({ workflow: 'held', input: {} })
  const { agent, offer } = await holder(run.id, n % 2)
  const token = await agent.signToken()
  const probes = cluster.urls.flatMap((url): Probe[] => [
    {
      what: `identity at ${url}`,
      use: () => callOp({ url, apiKey: token }, ops.runnerSurface.claims, { slots: 1, waitMs: 0 }),
    },
    {
      what: `token of the run at ${url}`,
      use: () => callOp({ url, apiKey: offer.token }, ops.runnerSurface.self, { run: run.id }),
    },
  ])
  // Whatever is kept in memory is there now.
  for (const { use } of probes) await use()
  const since = performance.now()
  const [dead] = await Promise.all([
    Promise.all(probes.map((probe) => deadAfter(probe, since))),
    cluster.clients[(n >> 1) % 2]!.runners.revoke({ runner: agent.runner }),
  ])
  for (const { use, what } of probes) assert.equal(await isRefused(use), true, `${what} serves again`)
  agent.close()
  await cluster.client.runs.cancel({ run: run.id })
  return dead
}

/** An agent that has accepted this run and reports that it executes. */
async function holder(run: string, at: number): Promise<{ agent: SimulatedAgent; offer: Offer }> {
  const { runnerPools } = await cluster.client.pools.list({})
  const { registrationToken } = await cluster.client.pools.createToken({ pool: runnerPools[0]!.id })
  const taken = Promise.withResolvers<Offer>()
  const url = cluster.urls[at]!
  const agent = await startSimulatedAgent({
    url,
    pollUrl: url,
    token: registrationToken.token,
    slots: 2,
    onRun(offer, self) {
      const { epoch } = offer
      self.send({ t: 'entries', batches: [{ run: offer.run, epoch, first: 1, entries: [['start', Date.now()]] }] })
      taken.resolve(offer)
    },
    onClosed: () => undefined,
  })
  const offer = await taken.promise
  assert.equal(offer.run, run)
  await until('it runs', async () => (await get(cluster.client, run)).status === 'running')
  return { agent, offer }
}

async function deadAfter({ use, what }: Probe, since: number): Promise<number> {
  await until(
    `the end of the ${what}`,
    async () => {
      await wait(POLL_MS)
      return isRefused(use)
    },
    { ms: 2 * DEAD_WITHIN_MS },
  )
  return performance.now() - since
}

async function isRefused(use: () => Promise<unknown>): Promise<boolean> {
  try {
    await use()
    return false
  } catch (error) {
    if (error instanceof ApiError && error.status >= 400 && error.status < 500) return true
    throw error
  }
}

const skip = noHosts() ?? false
/** A busy machine has kept a host silent for 3 s, and its runs were lost by that before it was revoked. */
const PATIENT = { WINDLASS_FENCE_MS: '5000', WINDLASS_LEASE_MS: '8000' }
let fleet: Fleet

before(async () => {
  if (skip) return
  const workflows = { 'fleet-fresh': 'fresh' } as const
  fleet = await startFleet({
    env: { ...SCALED, ...PATIENT },
    hosts: [{ name: 'stays', slots: 8 }],
    workflows,
    crashes: 0,
    coordinators: 2,
  })
})

after(() => fleet?.stop())

/** More than the host that stays has slots for. */
const RUNS = 12
/** Long enough that it executes when the runner is revoked. */
const PART = { lines: 5, takesMs: 700 }

async function executingOn(host: FleetHost): Promise<string[]> {
  const input: Input = { folder: fleet.folder, parts: [PART, PART, PART, PART] }
  const triggers = Array.from({ length: RUNS }, () => fleet.client.runs.trigger({ workflow: 'fleet-fresh', input }))
  const ids = (await Promise.all(triggers)).map(({ run }) => run.id)
  const isThere = async () => {
    const runs = await Promise.all(ids.map((id) => get(fleet.client, id)))
    return runs.some((run) => run.status === 'running' && run.runner?.name === host.name)
  }
  const more = () => host.process().stderr().slice(-2000)
  await until(`a run at ${host.name}`, isThere, { ms: 20_000, more })
  return ids
}

async function runnerOf(host: FleetHost): Promise<string> {
  const { runners } = await fleet.client.runners.list({})
  return runners.find(({ name }) => name === host.name)!.id
}

/** All is well with the runs, and none that the host had has lost its only attempt by that. */
async function finishElsewhere(
  { name }: FleetHost,
  ids: readonly string[],
  t: { diagnostic(text: string): void },
): Promise<void> {
  const runs = await familiesEnded(fleet.client, ids, 40_000)
  const judged = await Promise.all(runs.map((run) => judge(fleet.client, run)))
  assert.deepEqual(
    judged.flatMap(({ wrong }) => wrong),
    [],
  )
  // A busy machine keeps the other host silent for longer than its lease: such a run is lost as well.
  const moved = runs.filter(({ lost }) => lost?.runner?.name === name)
  assert.ok(moved.length > 0, 'nothing was taken from it')
  for (const run of moved) assert.equal(run.lost?.what, 'operator')
  t.diagnostic(`${moved.length} of ${runs.length} runs went to another host`)
}

/** A timer of the reaper ends a moment after its shell. */
async function noneIsLeft({ net }: FleetHost): Promise<void> {
  await until('the end of all processes of the host', () => net.pids().length === 0, {
    more: () => net.pids().map(lookOf).join('\n'),
  })
}

function lookOf(pid: number): string {
  return spawnSync('ps', ['-o', 'pid,ppid,user,stat,etime,args', '-p', String(pid)], { encoding: 'utf8' }).stdout
}

test(
  'a revoked agent ends its programs and itself, and its runs are executed elsewhere',
  { skip, timeout: 120_000 },
  async (t) => {
    const host = await fleet.addHost({ name: 'revoked', coordinator: 0 })
    const ids = await executingOn(host)
    await fleet.cluster.clients[1]!.runners.revoke({ runner: await runnerOf(host), reason: 'test' })
    assert.equal(await host.process().ended(15_000), EXIT.revoked)
    await noneIsLeft(host)
    await finishElsewhere(host, ids, t)
  },
)

test(
  'one that cannot be reached is revoked as well: its runs are executed elsewhere once they are ended there',
  { skip, timeout: 120_000 },
  async (t) => {
    const host = await fleet.addHost({ name: 'unreachable', coordinator: 1 })
    const ids = await executingOn(host)
    host.net.loses({ toHost: 100, fromHost: 100 })
    await fleet.client.runners.revoke({ runner: await runnerOf(host), reason: 'test' })
    await finishElsewhere(host, ids, t)
    host.net.loses({ toHost: 0, fromHost: 0 })
    // It hears of it when it comes back.
    assert.equal(await host.process().ended(60_000), EXIT.revoked)
    await noneIsLeft(host)
  },
)
