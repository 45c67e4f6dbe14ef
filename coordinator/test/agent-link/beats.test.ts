import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type AgentFacts, PROTOCOL } from '@windlass/shared/wire/agent.ts'
import { agentSettings, leaseOf } from '../../runners/settings.ts'
import { anAgent, type Link, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { until, untilPolled } from '../_kit/until.ts'

let c: TestCoordinator
const agents: TestAgent[] = []
let pools = 0

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function connected(at = c): Promise<{ agent: TestAgent; link: Link; pool: string }> {
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: `beats-${++pools}` })
  const agent = (await anAgent(c, { pool: runnerPool.id })).at(at)
  agents.push(agent)
  return { agent, link: await agent.connect(), pool: runnerPool.id }
}

const FACTS: AgentFacts = {
  labels: ['gpu'],
  platform: 'linux-riscv64',
  capabilities: ['bubblewrap', 'something newer'],
  isolation: { level: 'bubblewrap', user: 'own', cgroup: true, network: 'none' },
  unready: [{ check: 'disk', message: 'the disk is full' }],
}

const runnerOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner

test('what an agent says of itself is kept: with its hello, and with a heartbeat when it has changed', async () => {
  const { agent, link } = await connected()
  await agent.connect([], { facts: FACTS })
  const { labels, platform, isolation, unready, protocol } = await runnerOf(agent)
  assert.deepEqual({ labels, platform, isolation, unready, protocol }, { ...factsOf(FACTS), protocol: PROTOCOL })
  await link.closed()
  const again = await agent.connect()
  assert.equal((await runnerOf(agent)).platform, FACTS.platform, 'who says nothing has not changed')
  again.send({
    t: 'heartbeat',
    n: 1,
    holds: [],
    slots: 9,
    facts: {
      ...FACTS,
      labels: [],
      isolation: null,
      unready: [{ check: 'wordy', message: `a\u0001b${'c'.repeat(997)}` }],
    },
  })
  await again.next('beat')
  await untilPolled('its words to be stored', async () => (await runnerOf(agent)).slots === 9)
  const now = await runnerOf(agent)
  assert.deepEqual([now.labels, now.isolation], [[], null])
  // All read it who ask for one of a page of runners.
  assert.deepEqual(now.unready, [{ check: 'wordy', message: `a b${'c'.repeat(297)}` }])
})

function factsOf({ labels, platform, isolation, unready }: AgentFacts) {
  return { labels, platform, isolation, unready }
}

test('welcome and heartbeats tell what time it is and whether there is work to ask for', async () => {
  const { agent, link } = await connected()
  const one = await link.heartbeat(1)
  assert.ok(Math.abs(one.now! - Date.now()) < 60_000)
  assert.deepEqual([one.intake?.state, one.settings], ['open', undefined])
  await c.call(ops.runners.cordon, { runner: agent.id, reason: 'maintenance' })
  const two = await link.heartbeat(2)
  assert.deepEqual([two.intake?.state, two.intake?.reason], ['cordoned', 'maintenance'])
  assert.ok(two.intake!.epoch > one.intake!.epoch)
  await c.call(ops.runners.drain, { runner: agent.id })
  assert.equal((await link.heartbeat(3)).intake?.state, 'drained')
})

test('a changed setting of the pool comes with the next heartbeat, once', async () => {
  const { link, pool } = await connected()
  const beat = async (n: number, fenceMs: number) => {
    link.send({ t: 'heartbeat', n, holds: [], fenceMs })
    return link.next('beat')
  }
  const { fenceMs } = c.deps.config
  assert.equal((await beat(1, fenceMs)).settings, undefined)
  await c.call(ops.pools.update, { pool, settings: { reassignAfterMs: 300_000, slots: 3, limits: { memoryMb: 256 } } })
  const { settings } = await beat(2, fenceMs)
  assert.deepEqual([settings?.fenceMs, settings?.pool?.slots, settings?.pool?.limits.memoryMb], [275_000, 3, 256])
  assert.equal((await beat(3, 275_000)).settings, undefined)
})

test('heartbeats of many agents share their statements', async () => {
  const many = await Promise.all(Array.from({ length: 20 }, () => connected()))
  await Promise.all(many.map(({ link }) => link.heartbeat(1)))
  const before = await statements()
  await Promise.all(many.map(({ link }) => link.heartbeat(2)))
  const beats = (await statements()) - before
  assert.ok(beats <= 12, `${beats} statements for 20 heartbeats`)
})

/** How often the statement of heartbeats has run; counted by a trigger that fires once for each. */
async function statements(): Promise<number> {
  await c.db.unsafe(`
    create table if not exists beat_count (n int);
    create or replace function count_beat() returns trigger language plpgsql as
      $$ begin insert into beat_count values (1); return null; end $$;
    create or replace trigger counts_beats after update of last_heartbeat_at on runners
      for each statement execute function count_beat();`)
  const [row] = await c.db<[{ count: number }]>`select count(*)::int as count from beat_count`
  return row.count
}

test('how a connection has ended is noted, and forgotten with the next one', async () => {
  const end = async ({ id }: TestAgent) => {
    const [row] = await c.db<[{ by: string | null }]>`select disconnected_by as by from runners where id = ${id}`
    return row.by
  }
  const { agent, link } = await connected()
  assert.equal(await end(agent), null)
  link.close()
  await until('its end to be noted', async () => (await end(agent)) === 'agent')
  const again = await agent.connect()
  assert.equal(await end(agent), null)
  again.sendText('no frame')
  await until('our end to be noted', async () => (await end(agent)) === 'coordinator')
})

test('a late heartbeat over an old connection leaves alone what the agent said elsewhere since', async () => {
  const other = await c.another()
  const { agent, link } = await connected()
  const again = await agent.at(other).connect([], { facts: FACTS })
  // Each tries to store what the one before it could not.
  for (let n = 0; n < 3; n++) {
    link.send({ t: 'heartbeat', n, holds: [], slots: 1, facts: { ...FACTS, labels: ['before'] } })
    await link.next('beat')
  }
  again.send({ t: 'heartbeat', n: 1, holds: [], slots: 2 })
  await again.next('beat')
  await untilPolled('its words to be stored', async () => (await runnerOf(agent)).slots === 2)
  assert.deepEqual((await runnerOf(agent)).labels, ['gpu'])
})

test('the end of an old connection says nothing about an agent that is connected elsewhere by now', async () => {
  const other = await c.another()
  const { agent, link } = await connected()
  await agent.at(other).connect()
  link.close()
  // Of the same kind, begun later and noted: the one before was looked at as well.
  const sign = await connected()
  sign.link.close()
  const by = async ({ id }: TestAgent) =>
    (await c.db<{ by: string | null }[]>`select disconnected_by as by from runners where id = ${id}`)[0]!.by
  await until('the sign', async () => (await by(sign.agent)) === 'agent')
  assert.equal(await by(agent), null)
})

test('of many agents each beats less often, but never so seldom that two lost beats end its runs', () => {
  const config = { heartbeatMs: 10_000, fenceMs: 50_000, leaseMs: 75_000, keyLifeMs: 86_400_000 }
  const beats = (size: number, pool = {}) =>
    agentSettings({ config, sockets: { size } }, PoolSettings.parse(pool)).heartbeatMs
  assert.deepEqual(
    [1, 500, 501, 1000, 5000].map((size) => beats(size)),
    [10_000, 10_000, 11_000, 20_000, 20_000],
  )
  assert.equal(beats(5000, { reassignAfterMs: 60_000 }), 14_000)
  assert.equal(beats(5000, { reassignAfterMs: 600_000 }), 100_000)
})

test('a lease is longer than every silence that its agent may obey, whatever is set by now', () => {
  const config = { heartbeatMs: 10_000, fenceMs: 50_000, leaseMs: 75_000, keyLifeMs: 86_400_000 }
  const lease = (reassignAfterMs: number | null, promisedMs: number) => leaseOf(config, { reassignAfterMs }, promisedMs)
  assert.equal(lease(null, 50_000), 75_000)
  assert.equal(lease(600_000, 575_000), 600_000)
  assert.equal(lease(600_000, 50_000), 600_000, 'raised, and not heard of yet')
  assert.equal(lease(60_000, 575_000), 600_000, 'lowered, and not heard of yet')
  assert.equal(lease(null, 575_000), 600_000, 'taken back, and not heard of yet')
})
