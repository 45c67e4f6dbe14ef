import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type EntryBatch, PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { createPace } from '../../pace.ts'
import { createFrameQueues } from '../../agent-link/frame-queue.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aConnection, large } from '../_kit/frame-connection.ts'
import { until } from '../_kit/until.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn()
  agent = await anAgent(c)
})
after(async () => {
  agent.close()
  await c.stop()
})

const batchOf = (n: number): EntryBatch => ({
  run: `run_${String(n).padStart(26, '0')}`,
  epoch: 1,
  first: 1,
  entries: [['resume', 1]],
})
const entries = (count: number, from = 0) => ({
  t: 'entries' as const,
  batches: Array.from({ length: count }, (_, n) => batchOf(from + n)),
})

/** Frames are read no more, until they may go on. */
function hold(t: TestContext) {
  const held = Promise.withResolvers<void>()
  const { mock } = t.mock.method(c.deps.sockets.pace, 'next', () => held.promise)
  return { waiting: () => mock.callCount(), goOn: () => held.resolve() }
}

test('of large frames a few batches are begun in each turn of the event loop', async (t) => {
  const ended = new AbortController()
  let inTurn = 0
  let most = 0
  const count = async () => {
    for (; !ended.signal.aborted; inTurn = 0) await setImmediate()
  }
  const counting = count()
  const begun: string[] = []
  t.mock.method(c.deps.entries, 'add', ({ run }: EntryBatch) => {
    most = Math.max(most, ++inTurn)
    begun.push(run)
    return Promise.resolve({ kind: 'stale' })
  })
  const link = await agent.connect()
  for (const from of [0, 2000, 4000]) link.send(entries(2000, from))
  link.send(entries(1, 6000))
  await until('all to be begun', () => begun.length === 6001)
  ended.abort()
  await counting
  assert.ok(most <= 250, `${most} in one turn`)
  // A small frame does not overtake the large ones before it.
  assert.deepEqual(begun, begun.toSorted())
  link.close()
})

test('heartbeats are answered, and others served, while large frames wait', async (t) => {
  const held = hold(t)
  const link = await agent.connect()
  for (let n = 0; n < 5; n++) link.send(entries(2000))
  await until('the frames to wait', () => held.waiting() === 1)
  assert.equal((await link.heartbeat(1)).n, 1)
  link.send({ t: 'accept', runs: [] })
  await link.next('accepted')
  await c.call(ops.pools.list, { org: c.org })
  assert.equal(held.waiting(), 1)
  held.goOn()
  link.close()
})

test('the hello of an agent that holds many runs is taken before what comes behind it', async (t) => {
  const held = hold(t)
  const link = await agent.dial()
  const holds = Array.from({ length: 2000 }, (_, n) => [batchOf(n).run, 1] as const)
  link.send({ t: 'hello', protocol: PROTOCOL_NAME, version: 'test', slots: 4, holds })
  link.send({ t: 'heartbeat', n: 7, holds: [] })
  link.send(entries(1))
  await until('the hello to wait', () => held.waiting() === 1)
  held.goOn()
  await link.next('welcome')
  assert.equal((await link.next('beat')).n, 7)
  assert.deepEqual(await link.verdict({ run: batchOf(0).run as never, epoch: 1 }), { kind: 'stale' })
  link.close()
})

test('batches of runs that nobody has are answered together, not in a frame each', async (t) => {
  const link = await agent.connect()
  const { mock } = t.mock.method(JSON, 'stringify')
  link.send(entries(100))
  const run = batchOf(99).run as never
  assert.deepEqual(await link.verdict({ run, epoch: 1 }), { kind: 'stale' })
  const said = mock.calls.filter(({ arguments: [frame] }) => (frame as { t?: string } | null)?.t === 'stale')
  assert.equal(said.length, 1)
  link.close()
})

const nameOf = (text: string) => /entries"(\w*)/.exec(text)?.[1]

test('a heartbeat is begun between the pieces of a large frame', async () => {
  const begun: string[] = []
  const begin = (name: string) => () => {
    begun.push(name)
    if (name === 'first') queue.add('beat')
    return Promise.resolve()
  }
  const queue = createFrameQueues(createPace()).open(
    { id: 'a', orgId: 'one' },
    {
      read: (text) => ({
        weight: 1,
        pieces: text.length > 10 ? ['first', 'second', 'third'].map(begin) : [begin(text)],
      }),
      failed: assert.fail,
      close: assert.fail,
    },
  )
  queue.add('hello')
  queue.add(large(''))
  await until('all to be begun', () => begun.length === 5)
  assert.deepEqual(begun, ['hello', 'first', 'beat', 'second', 'third'])
})

test('orgs and agents take turns, one large frame in each turn of the event loop', async () => {
  const queues = createFrameQueues(createPace())
  const read: string[] = []
  const a = aConnection(queues, { id: 'a', orgId: 'one' }, read)
  const b = aConnection(queues, { id: 'b', orgId: 'one' }, read)
  const other = aConnection(queues, { id: 'c', orgId: 'two' }, read)
  read.length = 0
  for (const n of [1, 2, 3]) a.add(large(`a${n}`))
  b.add(large('b1'))
  other.add(large('c1'))
  assert.deepEqual(read, [])
  let seen = 0
  while (read.length < 5) {
    await setImmediate()
    assert.ok(read.length - seen <= 1)
    seen = read.length
  }
  const order = read.map(nameOf)
  assert.ok(order.indexOf('c1') <= 2, order.join())
  assert.deepEqual(
    order.filter((name) => name !== 'c1'),
    ['a1', 'b1', 'a2', 'a3'],
  )
})

test('small frames of an org are read as they come, up to some in each turn of the event loop', async () => {
  const queues = createFrameQueues(createPace())
  const read: string[] = []
  const all = Array.from({ length: 100 }, (_, n) => aConnection(queues, { id: `${n}`, orgId: 'one' }, []))
  const many = aConnection(queues, { id: 'many', orgId: 'one' }, read)
  await setImmediate()
  assert.equal(all.length, 100)
  read.length = 0
  for (let n = 0; n < 100; n++) many.add(large('', 10_000))
  assert.equal(read.length, 6)
  await until('the rest to be read', () => read.length === 100)
})

test('what is under way is bounded: frames stay text until enough of what was read is answered', async () => {
  const queues = createFrameQueues(createPace(), 600_000)
  const read: string[] = []
  const heavy = { weight: 4000, isAnswered: false }
  const a = aConnection(queues, { id: 'a', orgId: 'one' }, read, heavy)
  const b = aConnection(queues, { id: 'b', orgId: 'one' }, read)
  for (const answer of a.answers.splice(0)) answer()
  await setImmediate()
  read.length = 0
  for (const n of [1, 2, 3, 4, 5]) a.add(large(`a${n}`))
  await until('two to be read', () => read.length === 2)
  // Another agent of the org is not held up.
  b.add(large('b1'))
  await until('the other to be read', () => read.length === 3)
  assert.deepEqual(read.map(nameOf), ['a1', 'a2', 'b1'])
  a.answers.shift()!()
  await until('one more to be read', () => read.length === 4)
  assert.equal(nameOf(read[3]!), 'a3')
  a.end()
  b.end()
})

test('entries that are answered late leave room to read others', async () => {
  const queues = createFrameQueues(createPace(), 1)
  const read: string[] = []
  const late = aConnection(queues, { id: 'a', orgId: 'one' }, read, { weight: 4000, isAnswered: false })
  for (const answer of late.answers.splice(0)) answer()
  await setImmediate()
  read.length = 0
  for (let n = 0; n < 8; n++) late.add(large(`a${n}`))
  // Three count apart, and two are under way: of one agent no more is kept.
  await until('what there is room for', () => read.length === 5)
  late.answers.shift()!()
  await until('one more', () => read.length === 6)
  // Others of the org have room of their own.
  const other = aConnection(queues, { id: 'b', orgId: 'one' }, read)
  other.add(large('b1'))
  await until('the other', () => nameOf(read.at(-1)!) === 'b1')
  late.end()
  other.end()
})

test('who sends more than agents may have under way is cut off, and nobody else of its org', async () => {
  const queues = createFrameQueues({ next: () => new Promise(() => {}) })
  const honest = aConnection(queues, { id: 'honest', orgId: 'one' }, [])
  for (let n = 0; n < 9; n++) honest.add(large('', 512 * 1024))
  const single = aConnection(queues, { id: 'single', orgId: 'one' }, [])
  for (let n = 0; n < 100; n++) single.add(large('', 512 * 1024))
  assert.deepEqual(single.closed, ['1008 more was sent than may wait for its answer'])
  // Below what each may have, but together more than an org may.
  const text = large('', 1024 * 1024)
  const many = Array.from({ length: 8 }, (_, n) => aConnection(queues, { id: `${n}`, orgId: 'one' }, []))
  for (let n = 0; n < 30; n++) for (const one of many) one.add(text)
  const reason = '1013 the agents of this org have sent more than may wait; connect again'
  assert.ok(many.some(({ closed }) => closed[0] === reason))
  assert.ok(many.some(({ closed }) => closed.length === 0))
  assert.deepEqual(honest.closed, [])
  // What was cut off takes no room any more: it may come again.
  const again = aConnection(queues, { id: 'single', orgId: 'one' }, [])
  for (let n = 0; n < 9; n++) again.add(large('', 512 * 1024))
  assert.deepEqual([...again.closed, ...honest.closed], [])
})

test('several connections of one agent have its bounds together', () => {
  const queues = createFrameQueues({ next: () => new Promise(() => {}) })
  const all = Array.from({ length: 10 }, () => aConnection(queues, { id: 'a', orgId: 'one' }, []))
  for (let n = 0; n < 50; n++) for (const one of all) one.add(large('', 512 * 1024))
  assert.ok(all.some(({ closed }) => closed.length > 0))
})

// Five agents with 45,000 frames of a few characters each had another one of their org cut, time and again.
test('many small frames that nobody has read count when somebody has to give way', () => {
  const queues = createFrameQueues({ next: () => new Promise(() => {}) })
  const small = large('', 100)
  const floods = Array.from({ length: 5 }, (_, n) => aConnection(queues, { id: `flood ${n}`, orgId: 'one' }, []))
  const honest = aConnection(queues, { id: 'honest', orgId: 'one' }, [])
  honest.add(large('', 300_000))
  for (let n = 0; n < 45_000; n++) for (const one of floods) one.add(small)
  assert.ok(floods.some(({ closed }) => closed[0]?.startsWith('1013 ')))
  assert.deepEqual(honest.closed, [])
})
