import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { OLDEST_PROTOCOL, PROTOCOL, PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { readFrame } from '../../agent-link/frames.ts'
import { aRunningAgent, anAgent, end, type Held, line, placementOf, returned, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const run = newId('run')
const HELLO = { t: 'hello', protocol: PROTOCOL_NAME, version: '1', slots: 1, holds: [[run, 1]] }
const batch = (...entries: unknown[]) => ({ t: 'entries', batches: [{ run, epoch: 1, first: 1, entries }] })
const ending = (ending: unknown, computeMs: unknown = 1) => batch(['end', 1, ending, computeMs])

const INSTANCE = { id: 'a', previous: ['b', 'c'], host: 'd', boot: '' }
const FACTS = {
  labels: ['gpu', 'zone:eu-1'],
  platform: 'linux-x64',
  capabilities: ['cgroup', 'of tomorrow'],
  isolation: { level: 'process', user: 'agent', cgroup: false, network: 'host' },
  unready: [{ check: 'disk', message: 'full' }],
}
const BEAT = { t: 'heartbeat', n: 1, holds: [] }

const GOOD = [
  HELLO,
  { ...HELLO, protocol: `windlass/${OLDEST_PROTOCOL}` },
  { ...HELLO, instance: INSTANCE, facts: FACTS, fenceMs: 50_000 },
  { ...HELLO, instance: INSTANCE, connection: 2 ** 31 - 1 },
  { ...HELLO, facts: { ...FACTS, isolation: null, labels: [], unready: [] } },
  { t: 'hello', protocol: `windlass/${OLDEST_PROTOCOL - 1}` },
  { t: 'hello', protocol: 4 },
  { ...BEAT, facts: FACTS, slots: 3, fenceMs: 1 },
  { t: 'leave', reason: '', deadlineMs: 0 },
  { t: 'decline', runs: [[run, 1]] },
  batch(['start', 1, FACTS.isolation]),
  { ...HELLO, holds: [] },
  { t: 'hello', protocol: `windlass/${PROTOCOL + 5}` },
  { t: 'accept', runs: [[run, 0]] },
  { t: 'heartbeat', n: 1, holds: [] },
  { t: 'renew', runs: [[run, 2 ** 31 - 1]] },
  batch(['start', 1], ['e', 2, 'phase', '{}'], ['end', 3, { how: 'returned', outputText: 'null' }, 0]),
  ending({ how: 'threw', error: {} }),
  ending({ how: 'exited', exitCode: -1 }),
  ending({ how: 'killed', signal: 'SIGKILL' }),
  ending({ how: 'killed', signal: 'SIGKILL', reason: 'too little memory' }),
  ending({ how: 'timed-out', timeoutMs: 5 }, 1.5),
  ending({ how: 'cancelled', forced: false }),
  ending({ how: 'lost', reason: '' }),
]

const BAD = [
  null,
  [],
  'hello',
  {},
  { t: '__proto__' },
  { t: 'toString', runs: [] },
  { ...HELLO, protocol: '1' },
  { ...HELLO, protocol: 'windlass/' },
  { ...HELLO, protocol: 'windlass/1.5' },
  { ...HELLO, protocol: null },
  { ...HELLO, protocol: `windlass/${OLDEST_PROTOCOL}`, slots: 0 },
  { ...HELLO, instance: null },
  { ...HELLO, instance: { ...INSTANCE, previous: ['a', 'b', 'c'] } },
  { ...HELLO, instance: { ...INSTANCE, host: 'a\0' } },
  { ...HELLO, instance: { ...INSTANCE, id: 'x'.repeat(65) } },
  { ...HELLO, facts: { ...FACTS, labels: ['a\0'] } },
  { ...HELLO, facts: { ...FACTS, isolation: { level: 'none' } } },
  { ...HELLO, facts: { ...FACTS, unready: [{ check: 'disk' }] } },
  { ...HELLO, facts: [] },
  { ...HELLO, connection: 0 },
  { ...HELLO, connection: '1' },
  { ...HELLO, connection: 2 ** 31 },
  { ...HELLO, fenceMs: 0 },
  { ...HELLO, fenceMs: 2 ** 31 },
  { ...BEAT, slots: 0 },
  { ...BEAT, fenceMs: 1.5 },
  { ...BEAT, facts: {} },
  { t: 'leave', reason: 'x'.repeat(1001), deadlineMs: 0 },
  { t: 'leave', reason: '', deadlineMs: -1 },
  batch(['start', 1, {}]),
  { ...HELLO, slots: 0 },
  { ...HELLO, slots: 1025 },
  { ...BEAT, slots: 2 ** 31 - 1 },
  { ...HELLO, slots: undefined },
  { ...HELLO, version: 1 },
  { ...HELLO, version: 'x'.repeat(65) },
  { ...HELLO, version: 'a\0' },
  { ...HELLO, holds: undefined },
  { ...HELLO, holds: {} },
  { t: 'decline', runs: [run] },
  { t: 'accept' },
  { t: 'accept', runs: [run] },
  { t: 'accept', runs: [[run, '1']] },
  { t: 'accept', runs: [[run, 2 ** 31]] },
  { t: 'accept', runs: [[1, 1]] },
  { t: 'accept', runs: [['\0', 1]] },
  { t: 'renew', runs: [[`${run}\0`, 1]] },
  { t: 'heartbeat', holds: [] },
  { t: 'heartbeat', n: 1 },
  { t: 'renew', runs: [null] },
  { t: 'entries' },
  { t: 'entries', batches: [null] },
  { t: 'entries', batches: [{ run, epoch: 1, first: 1, entries: [] }] },
  { t: 'entries', batches: [{ run, epoch: 1, first: 0, entries: [['start', 1]] }] },
  { t: 'entries', batches: [{ run, epoch: 1.5, first: 1, entries: [['start', 1]] }] },
  { t: 'entries', batches: [{ run, epoch: 1, first: 1, entries: {} }] },
  batch('start'),
  batch(['start']),
  batch(['start', 1e300]),
  batch(['begin', 1]),
  batch(['e', 1, 'phase']),
  batch(['e', 1, 'phase', {}]),
  ending(null),
  ending({ how: 'vanished' }),
  ending({ how: 'constructor' }),
  ending({ how: 'returned' }),
  ending({ how: 'threw' }),
  ending({ how: 'threw', error: 'x' }),
  ending({ how: 'exited', exitCode: null }),
  ending({ how: 'killed' }),
  ending({ how: 'killed', signal: 'SIGKILL', reason: 5 }),
  ending({ how: 'timed-out', timeoutMs: -1 }),
  ending({ how: 'cancelled' }),
  ending({ how: 'lost', reason: {} }),
  ending({ how: 'exited', exitCode: 1 }, 'long'),
  ending({ how: 'exited', exitCode: 1 }, -5),
  // Text that counts as a number until something is added to it.
  ending({ how: 'exited', exitCode: 1 }, ' 5'),
  ending({ how: 'exited', exitCode: 1 }, 1e300),
]

test('every frame of the protocol is read', () => {
  for (const frame of GOOD) assert.deepEqual(readFrame(JSON.stringify(frame)), frame)
})

test('what lacks a part or has a wrong one is no frame', () => {
  for (const frame of BAD)
    assert.equal(readFrame(JSON.stringify(frame)), undefined, JSON.stringify(frame).slice(0, 120))
  for (const text of ['', '{', 'hello', '{"t":"hello"', '\u0000']) assert.equal(readFrame(text), undefined)
})

let c: TestCoordinator
let steady: Held
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aRun(c, { workflow: 'any' })
  steady = await aRunningAgent(c)
  agents.push(steady.agent)
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

test('a malformed frame closes its socket, and disturbs nobody', async () => {
  let seq = 1
  for (const text of ['{', JSON.stringify(batch(['e', 1])), JSON.stringify({ t: 'accept' })]) {
    const agent = await anAgent(c)
    agents.push(agent)
    const link = await agent.connect()
    link.sendText(text)
    assert.deepEqual(await link.closed(), { code: 1008, reason: 'not a frame' })
    assert.deepEqual(await steady.link.report(steady.offer, ++seq, line('still here')), { kind: 'ack', seq })
    // The same agent may come again and do better.
    await agent.connect()
  }
  assert.equal((await typesOf(c, steady.offer.run)).filter((type) => type === 'log.stdout').length, 3)
})

test('nothing is taken before hello', async () => {
  const agent = await anAgent(c)
  agents.push(agent)
  const link = await agent.dial()
  link.send({ t: 'heartbeat', n: 1, holds: [] })
  assert.deepEqual(await link.closed(), { code: 1008, reason: 'hello comes first' })
})

test('a program whose words are no JSON costs its agent nothing', async () => {
  const { agent, link, offer } = steady
  await aRun(c, { workflow: 'any' })
  const [other] = await agent.poll()
  await link.accept(other!)
  assert.deepEqual(
    await link.report(other!, 1, ['e', 1, 'phase', '{"a":'], end({ how: 'returned', outputText: '\u0000' })),
    { kind: 'ack', seq: 2 },
  )
  assert.equal((await link.heartbeat(1, placementOf(offer))).stale.length, 0)
  assert.deepEqual(await link.report(offer, 5, end(returned(1))), { kind: 'ack', seq: 5 })
})
