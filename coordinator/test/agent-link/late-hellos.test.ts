// A line is cut, or a coordinator stands still, after the upgrade: what an agent said then is read when it has given
// this connection up and serves over another one.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { AgentFacts, Instance } from '@windlass/shared/wire/agent.ts'
import {
  aHello,
  anAgent,
  anInstance,
  end,
  type Link,
  placementOf,
  returned,
  takeNext,
  type TestAgent,
} from '../_kit/agent.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { silence } from '../_kit/silence.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const FACTS: AgentFacts = { labels: [], platform: 'linux-x64', capabilities: [], isolation: null, unready: [] }
const UNREADY: AgentFacts = { ...FACTS, unready: [{ check: 'hooks', message: 'maintenance' }] }

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinator()
  other = await c.another()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const aStart = (more: Partial<Instance> = {}) => anInstance({ process: 'a process', ...more })

interface Row {
  connection: number
  unready: unknown
  isGone: boolean
}

async function rowOf({ id }: TestAgent): Promise<Row> {
  const [row] = await c.db<[Row]>`
    select connection, unready, disconnected_at is not null as is_gone
    from runners
    where id = ${id}`
  return row
}

async function isPutOff(link: Link, reason: RegExp): Promise<void> {
  const closed = await link.closed()
  assert.equal(closed.code, 1013)
  assert.match(closed.reason, reason)
}

for (const where of ['another coordinator', 'the same one'])
  test(`a hello that its agent has given up changes nothing when its next connection is at ${where}`, async (t) => {
    const agent = await anAgent(c)
    const instance = aStart()
    await agent.connect([], { instance, connection: 1 })
    const late = await agent.dial()
    const serving = where === 'the same one' ? agent : agent.at(other)
    const link = await serving.connect([], { instance, connection: 3, facts: FACTS })
    const { id } = await aRun(c, { workflow: 'any' })
    t.after(() => c.call(ops.runs.cancel, { run: id }).catch(() => undefined))
    const offer = await takeNext(serving, link)
    const row = await rowOf(agent)
    late.send(aHello({ instance, connection: 2, facts: UNREADY }))
    await isPutOff(late, /has given this connection up/)
    assert.deepEqual(await rowOf(agent), row)
    assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
    await link.report(offer, 2, end(returned(1)))
    assert.deepEqual([(await runOf(c, id)).status, (await runOf(c, id)).attempt], ['completed', 1])
  })

test('each process counts its connections anew, also under the name of the one before it', async () => {
  const agent = await anAgent(c)
  const instance = aStart()
  await agent.connect([], { instance, connection: 7 })
  await agent.connect([], { instance: { ...instance, process: 'the next one' }, connection: 1 })
  await agent.connect([], { instance: aStart({ previous: [instance.id], host: instance.host }), connection: 1 })
})

test('a machine that was set back to a snapshot of its memory is let in after the silence of a lease', async () => {
  const agent = await anAgent(c)
  const instance = aStart()
  await agent.connect([], { instance, connection: 7 })
  const early = await agent.dial()
  early.send(aHello({ instance, connection: 3 }))
  await isPutOff(early, /has given this connection up/)
  await silence(c, agent)
  await agent.connect([], { instance, connection: 4 })
  await agent.connect([], { instance, connection: 5 })
})

/** All that is read from now on is read so long after its connection was opened. */
function later(t: TestContext, ms: number): void {
  const here = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => here() + ms)
}

test('a hello without a number is put off when it is read long after the upgrade', async (t) => {
  const agent = await anAgent(c)
  const instance = anInstance()
  const late = await agent.dial()
  await agent.at(other).connect([], { instance, facts: FACTS })
  const row = await rowOf(agent)
  later(t, 16_000)
  late.send(aHello({ instance, facts: UNREADY }))
  await isPutOff(late, /read too late/)
  assert.deepEqual(await rowOf(agent), row)
})

const killed = aStart({ process: 'one that was killed' })

for (const [what, next] of [
  ['under the same name', { ...killed, process: 'the next one' }],
  ['under another name', aStart({ previous: [killed.id], host: killed.host, process: 'the next one' })],
] as const)
  test(`a hello of a killed process is put off, and no copy, where the next one is let in ${what}`, async (t) => {
    const agent = await anAgent(c)
    const late = await agent.dial()
    await agent.at(other).connect([], { instance: next, connection: 1, facts: FACTS })
    const row = await rowOf(agent)
    later(t, 21_000)
    late.send(aHello({ instance: killed, connection: 1, facts: UNREADY }))
    await isPutOff(late, /read too late/)
    assert.deepEqual(await rowOf(agent), row)
    assert.equal((await c.call(ops.runners.get, { runner: agent.id })).runner.copyRefusedAt, null)
  })

test('a hello that was given up is put off when it is read late, though no number was noted since', async (t) => {
  const agent = await anAgent(c)
  const instance = aStart()
  await agent.connect([], { instance, connection: 5, facts: FACTS })
  const late = await agent.dial()
  await c.db`update runners set connection = connection + 1 where id = ${agent.id}`
  const row = await rowOf(agent)
  later(t, 21_000)
  late.send(aHello({ instance, connection: 6, facts: UNREADY }))
  await isPutOff(late, /read too late/)
  assert.deepEqual(await rowOf(agent), row)
})

test('a hello with a number is let in while its agent waits for the answer', async (t) => {
  const agent = await anAgent(c)
  const slow = await agent.dial()
  later(t, 16_000)
  slow.send(aHello({ instance: aStart(), connection: 1 }))
  await slow.next('welcome')
})

test('a process counts for itself, also where a coordinator that takes no numbers let it in before', async () => {
  const agent = await anAgent(c)
  const first = aStart()
  await agent.connect([], { instance: first, connection: 40 })
  await c.db`update runners set instance_process = 'the next', connection = connection + 1 where id = ${agent.id}`
  const link = await agent.connect([], { instance: { ...first, process: 'the next' }, connection: 2 })
  assert.deepEqual((await link.heartbeat(1)).stale, [])
})

test('a hello takes no run away that was given out after its connection was opened', async () => {
  const agent = await anAgent(c)
  const instance = anInstance()
  const late = await agent.dial()
  const elsewhere = agent.at(other)
  const link = await elsewhere.connect([], { instance })
  const { id } = await aRun(c, { workflow: 'any' })
  const offer = await takeNext(elsewhere, link)
  late.send(aHello({ instance }))
  await late.next('welcome')
  assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
  await link.report(offer, 2, end(returned(1)))
  assert.deepEqual([(await runOf(c, id)).status, (await runOf(c, id)).attempt], ['completed', 1])
})

test('a hello that is read with the end of its connection changes nothing', async () => {
  const agent = await anAgent(c)
  const instance = aStart()
  await agent.connect([], { instance, connection: 1, facts: FACTS })
  const row = await rowOf(agent)
  const over = await agent.dial()
  // Both are sent in one turn of the loop, which the coordinator shares, and so are read in one.
  over.send(aHello({ instance, connection: 2, facts: UNREADY }))
  over.close()
  await over.closed()
  await agent.connect([], { instance, connection: 3, facts: FACTS })
  assert.deepEqual(await rowOf(agent), { ...row, connection: row.connection + 1 })
})

test('the end of a connection that comes amid its hello is noted', async () => {
  const agent = await anAgent(c)
  const instance = aStart()
  await agent.connect([], { instance, connection: 1 })
  await c.db.begin(async (tx) => {
    await tx`lock table run_losses in access exclusive mode`
    const cut = await agent.dial()
    cut.send(aHello({ instance, connection: 2 }))
    await untilBlocked(c.db, '%update run_losses%')
    cut.close()
    await cut.closed()
  })
  await until('its end to be noted', async () => (await rowOf(agent)).isGone)
})
