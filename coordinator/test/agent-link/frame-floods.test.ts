import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { readFrame } from '../../agent-link/frames.ts'
import { createSample } from '../../limits/sample.ts'
import { anAgent, end, placementOf, returned, start, type TestAgent } from '../_kit/agent.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
})
after(async () => {
  agent.close()
  await c.stop()
})

const LEAVE = JSON.stringify({ t: 'leave', reason: 'again', deadlineMs: 0 })
const TOO_MUCH = { code: 1008, reason: 'more was sent than may wait for its answer' }

test('frames that open transactions are taken one after the other, and others can work meanwhile', async () => {
  const link = await agent.connect()
  await c.db.begin(async (tx) => {
    await tx`select 1 from runners where id = ${agent.id} for update`
    for (let n = 0; n < 200; n++) link.sendText(LEAVE)
    await untilBlocked(c.db)
    // Behind all of them on the same connection: they have arrived.
    link.send({ t: 'accept', runs: [] })
    await link.next('accepted')
    assert.equal(await countBlocked(c.db), 1)
    link.close()
    await link.closed()
  })
})

test('a flood of small frames closes its socket, and what waits is dropped', async (t) => {
  const { mock } = t.mock.method(c.deps.log, 'warn', () => {})
  const link = await agent.connect()
  await c.db.begin(async (tx) => {
    await tx`select 1 from runners where id = ${agent.id} for update`
    for (let n = 0; n < 3000; n++) link.sendText(LEAVE)
    assert.deepEqual(await link.closed(), TOO_MUCH)
  })
  await untilPolled('nothing to be under way', async () => (await countBlocked(c.db)) === 0)
  // One was under way, and no other was begun.
  assert.equal(mock.callCount(), 0)
  const other = await agent.connect()
  assert.equal((await other.heartbeat(1)).n, 1)
  other.close()
})

test('an agent has so many acceptances under way as it may have offers, over all of its connections', async (t) => {
  const held = Promise.withResolvers<'late'>()
  const { mock } = t.mock.method(c.deps.acceptances, 'add', () => held.promise)
  const some = () => Array.from({ length: 64 }, (): [string, number] => [newId('run'), 1])
  const link = await agent.connect()
  for (let n = 0; n < 65; n++) link.send({ t: 'accept', runs: some() })
  assert.deepEqual(await link.closed(), {
    code: 1013,
    reason: 'more runs were accepted than may wait for their answer',
  })
  assert.equal(mock.callCount(), 4096)
  const second = await agent.connect()
  second.send({ t: 'accept', runs: some() })
  assert.equal((await second.closed()).code, 1013)
  held.resolve('late')
  const third = await agent.connect()
  third.send({ t: 'accept', runs: some() })
  assert.equal((await third.next('accepted')).no.length, 64)
  third.close()
})

test('hello is said once in a connection', async () => {
  const link = await agent.connect()
  link.send({ t: 'hello', protocol: PROTOCOL_NAME, version: 'test', slots: 1, holds: [] })
  assert.deepEqual(await link.closed(), { code: 1008, reason: 'hello comes once' })
})

test('of many lines a few are written, and the next one tells how many were not', () => {
  let now = 0
  const sample = createSample(() => now)
  const samples = Array.from({ length: 8 }, () => sample('a'))
  assert.deepEqual(samples, [{}, {}, {}, {}, {}, undefined, undefined, undefined])
  assert.deepEqual(sample('b'), {})
  now = 1000
  assert.deepEqual([sample('a'), sample('a')], [{ unlogged: 3 }, {}])
})

const RUN = newId('run')
const HELLO = { t: 'hello', protocol: PROTOCOL_NAME, version: '1', slots: 1, holds: [] }
const FACTS = { labels: [], platform: 'linux-x64', capabilities: [], isolation: null, unready: [] }
const placements = (count: number) => Array.from({ length: count }, () => [RUN, 2 ** 31 - 1])
const isRead = (frame: unknown) => readFrame(JSON.stringify(frame)) !== undefined

test('what the largest agent holds and accepts is read, and a multiple of it is not', () => {
  for (const [count, fits] of [
    [16_384, true],
    [16_385, false],
  ] as const) {
    assert.equal(isRead({ ...HELLO, holds: placements(count), facts: FACTS }), fits)
    assert.equal(isRead({ t: 'heartbeat', n: 1, holds: placements(count), facts: FACTS }), fits)
    assert.equal(isRead({ t: 'renew', runs: placements(count) }), fits)
  }
  for (const t of ['accept', 'decline']) {
    assert.equal(isRead({ t, runs: placements(4096) }), true)
    assert.equal(isRead({ t, runs: placements(4097) }), false)
  }
})

test('a frame has so many entries that one transaction can write them, over all of its batches', () => {
  const batch = (count: number) => ({
    run: RUN,
    epoch: 1,
    first: 1,
    entries: Array.from({ length: count }, () => ['resume', 1]),
  })
  const entries = (...counts: number[]) => ({ t: 'entries', batches: counts.map(batch) })
  assert.equal(isRead(entries(50_000)), true)
  assert.equal(isRead(entries(25_000, 25_000)), true)
  assert.equal(isRead(entries(50_001)), false)
  assert.equal(isRead(entries(25_000, 25_000, 1)), false)
})

test('only entries may be long, whatever else a frame says that it is', () => {
  const filling = 'x'.repeat(1024 * 1024)
  const batches = [{ run: RUN, epoch: 1, first: 1, entries: [['resume', 1]] }]
  assert.equal(isRead({ t: 'entries', batches, filling }), true)
  assert.equal(isRead({ t: 'heartbeat', n: 1, holds: [], filling }), false)
  assert.equal(isRead({ filling, t: 'heartbeat', n: 1, holds: [] }), false)
  const twoKinds = JSON.stringify({ u: 'heartbeat', n: 1, holds: [], filling }).replace('{"u"', '{"t":"entries","t"')
  assert.equal(readFrame(twoKinds), undefined)
})

test('a frame that is nearly all brackets or names is refused before it is parsed', (t) => {
  const parse = t.mock.method(JSON, 'parse')
  const names = Array.from({ length: 100_001 }, (_, n) => `"${n}":1`).join()
  const long = Array.from({ length: 8_000 }, (_, n) => `"${'k'.repeat(150)}${n}":1`).join()
  const numbers = `[${`1.${'2'.repeat(40)}e-300,`.repeat(25_000)}1]`
  const dense = [
    '['.repeat(250_001) + ']'.repeat(250_001),
    `[${'[],'.repeat(250_001)}1]`,
    `{${names}}`,
    `{${long}}`,
    numbers,
    `[${' '.repeat(1024 * 1024)}1]`,
  ]
  for (const filling of dense) {
    assert.equal(readFrame(`{"t":"entries","batches":[],"filling":${filling}}`), undefined)
    assert.equal(readFrame(`{"t":"heartbeat","n":1,"holds":[],"filling":${filling}}`), undefined)
  }
  assert.equal(parse.mock.callCount(), 0)
  const detail = { list: JSON.parse('['.repeat(499) + ']'.repeat(499)) as unknown, text: '[{,:'.repeat(100_000) }
  const threw = end({ how: 'threw', error: { name: 'Error', message: '', detail } } as never)
  assert.equal(isRead({ t: 'entries', batches: [{ run: RUN, epoch: 1, first: 1, entries: [threw] }] }), true)
})

test('numbers that no column takes are refused with their frame', async () => {
  const batch = (first: number, computeMs = 1) => ({
    t: 'entries' as const,
    batches: [{ run: RUN, epoch: 1, first, entries: [['resume', 1] as const, end(returned(1), computeMs)] }],
  })
  assert.equal(isRead(batch(2 ** 31 - 3)), true)
  assert.equal(isRead(batch(1, 30 * 86_400_000)), true)
  for (const bad of [batch(2 ** 31 - 2), batch(2 ** 40), batch(1, 2 ** 52)]) assert.equal(isRead(bad), false)
  const many = (count: number) => ({ t: 'entries', batches: Array.from({ length: count }, () => batch(1).batches[0]) })
  assert.equal(isRead(many(5500)), true)
  assert.equal(isRead(many(5501)), false)
  const link = await agent.connect()
  link.send(batch(2 ** 40))
  assert.deepEqual(await link.closed(), { code: 1008, reason: 'not a frame' })
})

// A dozen agents that named 4,096 invented runs a frame kept the acceptances of all orgs waiting for half a minute.
test('of an acceptance of thousands only what the runner was given is looked for', async (t) => {
  const add = t.mock.method(c.deps.acceptances, 'add')
  const other = await anAgent(c)
  const link = await other.connect()
  await aRun(c, { workflow: 'any' })
  const [offer] = await other.poll()
  const own = placementOf(offer!)
  const invented = Array.from({ length: 4095 }, (_, n) => [newId('run'), n] as const)
  for (let n = 0; n < 3; n++) link.send({ t: 'accept', runs: [...invented, own] })
  for (let n = 0; n < 3; n++) {
    const { runs, no } = await link.next('accepted')
    assert.deepEqual([runs, no.length], [[own], 4095])
  }
  assert.equal(add.mock.callCount(), 3)
  await link.report(offer!, 1, start(), end(returned(null)))
  link.close()
})

test('a long frame that is none closes its socket in its turn', async () => {
  const link = await agent.connect()
  link.send({ t: 'accept', runs: placements(1000) as never })
  link.sendText(JSON.stringify({ t: 'accept', runs: [], filling: 'x'.repeat(20_000) }).replace('"runs"', '"rums"'))
  await link.next('accepted')
  assert.deepEqual(await link.closed(), { code: 1008, reason: 'not a frame' })
})
