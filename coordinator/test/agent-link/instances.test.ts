import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Instance, PROTOCOL } from '@windlass/shared/wire/agent.ts'
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
import { noteDisconnections } from '../../agent-link/store.ts'
import { entriesOf } from '../_kit/audit.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { silence } from '../_kit/silence.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

/** An agent that is connected as this start. */
async function started(
  instance: Instance = anInstance(),
): Promise<{ agent: TestAgent; link: Link; instance: Instance }> {
  const agent = await anAgent(c)
  agents.push(agent)
  return { agent, link: await agent.connect([], { instance }), instance }
}

async function isRefused(agent: TestAgent, instance: Instance, more: Parameters<typeof aHello>[0] = {}): Promise<void> {
  const link = await agent.dial()
  link.send(aHello({ ...more, instance }))
  const { code, message } = await link.next('refused')
  assert.equal(code, 'REPLACED')
  assert.match(message, /copy or a backup.*registration token of its own/)
  assert.equal((await link.closed()).code, 1008)
}

const intakeOf = async ({ id }: TestAgent) => (await c.call(ops.runners.get, { runner: id })).runner.intake.state

const copies = async ({ id }: TestAgent) => entriesOf(c, { target: id, action: ['runners.copyRefused'] })

test('an agent that was started again on its host is welcomed at once, and its older connection is closed', async () => {
  const { agent, link, instance } = await started()
  const next = anInstance({ previous: [instance.id], host: instance.host })
  await agent.connect([], { instance: next })
  assert.equal((await link.closed()).code, 4001)
  // Nothing came of the welcome at the agent, and of the one before neither: it knows both.
  await agent.connect([], { instance: anInstance({ previous: [next.id, instance.id], host: instance.host }) })
  assert.deepEqual(await copies(agent), [])
})

test('a copy of the state folder on another host is refused and reported, and the original notices nothing', async () => {
  const { agent, link, instance } = await started()
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await isRefused(agent, anInstance({ previous: [instance.id] }))
  await isRefused(agent, { ...instance, host: 'another host' })
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.ok(runner.copyRefusedAt)
  const [entry, ...more] = await copies(agent)
  assert.deepEqual([entry?.actor.kind, more.length], ['system', 0], 'once a minute is enough')
  assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
  assert.deepEqual(await link.report(offer, 2, end(returned(1))), { kind: 'ack', seq: 2 })
  assert.equal((await runOf(c, offer.run)).status, 'completed')
})

test('a start that knows nothing of the one before is refused, on the same host too', async () => {
  const { agent, instance } = await started()
  await silence(c, agent)
  await isRefused(agent, anInstance({ host: instance.host }))
  await isRefused(agent, anInstance({ previous: ['somebody'], host: instance.host }))
})

test('a folder that was moved is welcomed once the host before has been silent for longer than its lease', async () => {
  const { agent, link, instance } = await started()
  const moved = anInstance({ previous: [instance.id] })
  await isRefused(agent, moved)
  link.close()
  await silence(c, agent)
  await agent.connect([], { instance: moved })
  // What was left behind has been overtaken.
  await isRefused(agent, anInstance({ previous: [instance.id], host: instance.host }))
})

test('a moved folder is welcomed at once when its agent was stopped, and has to wait when it was killed', async () => {
  const { agent, link, instance } = await started()
  link.close()
  await isDisconnected(agent)
  const moved = anInstance({ previous: [instance.id] })
  await mustWait(agent, { instance: moved })
  const again = await agent.connect([], { instance })
  again.send({ t: 'leave', reason: 'SIGTERM', deadlineMs: 1000 })
  await until('its drain', async () => (await intakeOf(agent)) === 'drained')
  await isRefused(agent, moved)
  again.close()
  await isDisconnected(agent)
  await agent.connect([], { instance: moved })
  assert.equal(await intakeOf(agent), 'open')
})

test('a machine that was started anew may have given the folder another disk, and is no clone of it', async () => {
  const [folder, host] = ['folder', 'a disk of this number']
  const { agent, instance } = await started(anInstance({ folder, host, boot: 'one' }))
  await aRun(c, { workflow: 'any' })
  const { run } = await takeNext(agent, await agent.connect([], { instance }))
  const next = anInstance({ previous: [instance.id], folder, boot: 'two' })
  await isRefused(agent, { ...next, boot: 'one' })
  await isRefused(agent, { ...next, folder: 'a copy' })
  await untilNoted(c, agent)
  await silence(c, agent)
  await agent.connect([], { instance: next, bootAgeMs: 60_000 })
  assert.equal((await runOf(c, run)).lost?.what, 'host')
  await c.call(ops.runs.cancel, { run })
})

const ANEW = /started anew.*: wait for silence/

// A host was cut off while the coordinator stood still, and its last heartbeat was read after its next boot.
test('a machine whose predecessor was heard since its boot waits, and is a clone when that goes on', async (t) => {
  const folder = 'folder'
  const { agent, instance } = await started(anInstance({ folder, boot: 'one' }))
  const next = anInstance({ previous: [instance.id], folder, boot: 'two' })
  const minuteAgo = { instance: next, bootAgeMs: 60_000 }
  await mustWait(agent, minuteAgo, ANEW)
  await mustWait(agent, { ...minuteAgo, instance: { ...next, host: instance.host } }, ANEW)
  // Between two heartbeats nothing is known.
  await mustWait(agent, { ...minuteAgo, bootAgeMs: 0 }, ANEW)
  const { runner } = await c.call(ops.runners.get, { runner: agent.id })
  assert.deepEqual([runner.copyRefusedAt, await copies(agent)], [null, []])
  const here = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => here() + 60_000)
  await c.db`update runners set last_heartbeat_at = now() where id = ${agent.id}`
  await isRefused(agent, next, minuteAgo)
  assert.equal((await copies(agent)).length, 1)
  await silence(c, agent)
  await agent.connect([], minuteAgo)
})

test('a folder that was moved is not welcomed while what its agent executed elsewhere may still execute', async () => {
  const { agent, link, instance } = await started()
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await untilNoted(c, agent)
  link.close()
  await silence(c, agent)
  const moved = anInstance({ previous: [instance.id] })
  await mustWait(agent, { instance: moved })
  await c.db`update placements set lease_expires_at = now() where run_id = ${offer.run}`
  await c.db.begin(async (tx) => {
    await tx`select from placements where run_id = ${offer.run} for update`
    // A pulse that passed over it has not lengthened its lease yet.
    await c.db`
      insert into lengthenings_owed (run_id, epoch, gap_at, touched_at, forward_ms)
      select run_id, epoch, now(), renewed_at, 60_000
      from placements
      where run_id = ${offer.run}`
    await mustWait(agent, { instance: moved })
  })
  await c.db`delete from lengthenings_owed`
  await agent.connect([], { instance: moved })
  await c.call(ops.runs.cancel, { run: offer.run })
})

test('a hello that was held up takes nothing from the connection that came after it', async () => {
  const other = await c.another()
  const { agent, instance } = await started()
  const { id } = await aRun(c, { workflow: 'any' })
  const late = await agent.dial()
  const elsewhere = agent.at(other)
  agents.push(elsewhere)
  const { link, offer } = await c.db.begin(async (tx) => {
    // A hello of a start that is known looks into this table before it compares what the agent has.
    await tx`lock table run_losses in access exclusive mode`
    late.send(aHello({ instance }))
    await untilBlocked(c.db, '%run_losses%')
    // So that one without a name is let in, which does not look there.
    await silence(c, agent)
    const link = await elsewhere.connect()
    return { link, offer: await takeNext(elsewhere, link) }
  })
  await late.next('welcome')
  assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
  assert.deepEqual([(await runOf(c, id)).status, (await runOf(c, id)).attempt], ['running', 1])
  await link.report(offer, 2, end(returned(1)))
})

test('of many copies that come at once one gets in', async () => {
  const { agent, instance, link } = await started()
  link.close()
  await silence(c, agent)
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const one = await agent.dial()
      one.send(aHello({ instance: anInstance({ previous: [instance.id] }) }))
      return Promise.race([one.next('welcome').then(() => 'in'), one.next('refused').then(() => 'out')])
    }),
  )
  assert.equal(outcomes.filter((outcome) => outcome === 'in').length, 1)
})

/** Turned away for now: it may come again. */
async function mustWait(
  agent: TestAgent,
  hello: Partial<Parameters<typeof aHello>[0]>,
  expected = /another start of this agent .*: stop it, or wait/,
): Promise<void> {
  const link = await agent.dial()
  link.send(aHello(hello))
  const { code, reason } = await link.closed()
  assert.equal(code, 1013)
  assert.match(reason, expected)
}

const isDisconnected = ({ id }: TestAgent) =>
  until('its end to be noted', async () => {
    const rows = await c.db`select from runners where id = ${id} and disconnected_at is not null`
    return rows.length > 0
  })

const NAMELESS = {}

test('an agent whose starts have no name gets in when the one before has gone', async () => {
  const { agent, link, instance } = await started()
  link.close()
  await isDisconnected(agent)
  const old = await agent.connect([], NAMELESS)
  const [entry, ...more] = await entriesOf(c, { target: agent.id, action: ['runners.takenOver'] })
  const { actor, after: facts } = entry!
  assert.deepEqual([actor.kind, facts, more.length], ['system', { protocol: PROTOCOL, version: 'test' }, 0])
  // It may come again at any time, and is not told from one of its kind.
  await agent.connect([], NAMELESS)
  assert.equal((await old.closed()).code, 4001)
  assert.equal((await entriesOf(c, { target: agent.id, action: ['runners.takenOver'] })).length, 1)
  assert.deepEqual(await copies(agent), [])
  // After the upgrade it goes on where it was.
  const upgraded = anInstance({ previous: [instance.id], host: instance.host })
  await mustWait(agent, { instance: upgraded })
  agent.close()
  await isDisconnected(agent)
  await agent.connect([], { instance: upgraded })
})

test('that a connection has ended, of which one hears late, is not the end of the one after it', async () => {
  const { agent } = await started()
  const [{ connection }] = await c.db<[{ connection: number }]>`select connection from runners where id = ${agent.id}`
  const ended = async (connection: number) => {
    await noteDisconnections(c.deps.db, [{ runnerId: agent.id, by: 'agent', connection }])
    const [row] = await c.db<[{ at: Date | null }]>`select disconnected_at as at from runners where id = ${agent.id}`
    return row.at !== null
  }
  assert.deepEqual([await ended(connection - 1), await ended(connection)], [false, true])
})

test('a start without a name takes nothing from the one that is connected; its run is executed once', async () => {
  const { agent, link } = await started()
  const { id } = await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  await mustWait(agent, NAMELESS)
  await mustWait(agent, { holds: [placementOf(offer)] })
  assert.equal((await copies(agent)).length, 1, 'once a minute is enough')
  assert.deepEqual((await link.heartbeat(1, placementOf(offer))).stale, [])
  assert.deepEqual([(await runOf(c, id)).status, (await runOf(c, id)).attempt], ['running', 1])
  await link.report(offer, 2, end(returned(1)))
  assert.equal((await runOf(c, id)).status, 'completed')
})

test('a start without a name waits until what the one before executes has ended or lost its lease', async () => {
  const { agent, link, instance } = await started()
  const { id } = await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  link.close()
  await isDisconnected(agent)
  await mustWait(agent, NAMELESS)
  assert.equal((await runOf(c, id)).attempt, 1)
  await c.db`update placements set lease_expires_at = now() where run_id = ${offer.run}`
  const old = await agent.connect([], NAMELESS)
  assert.deepEqual([(await runOf(c, id)).status, (await runOf(c, id)).attempt], ['queued', 2])
  // What was left behind has nothing to take back, and does not put an end to its successor.
  await mustWait(agent, { instance, holds: [placementOf(offer)] })
  const again = await takeNext(agent, old)
  assert.deepEqual((await old.heartbeat(1, placementOf(again))).stale, [])
  await old.report(again, 2, end(returned(1)))
})
