import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { Tx } from '../../db/client.ts'
import { anAgent, end, line, type Link, returned, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

/** A run that has begun: the next entry is number 2. */
async function aRunning(): Promise<Offer> {
  await aRun(c, { workflow: 'any' })
  return takeNext(agent, link)
}

async function lines(run: string): Promise<unknown[]> {
  return (await logOf(c, run)).filter((event) => event.channel === 'log').map((event) => event.data.text)
}

const texts = (...names: string[]) => names.map(line)

test('entries become events in their order, each with the time at which it happened', async () => {
  const offer = await aRunning()
  const phase: Entry = ['e', 1_700_000_000_123, 'phase', '{"name":"fetch","n":1e3}']
  assert.deepEqual(await link.report(offer, 2, line('a'), phase, line('b')), { kind: 'ack', seq: 4 })
  const log = await logOf(c, offer.run)
  assert.deepEqual(
    log.slice(3).map(({ type, channel }) => [type, channel]),
    [
      ['log.stdout', 'log'],
      ['phase', 'phase'],
      ['log.stdout', 'log'],
    ],
  )
  assert.deepEqual([log[4]?.at, log[4]?.data], [1_700_000_000_123, { name: 'fetch', n: 1000 }])
})

test('what is sent again is acknowledged and counted once', async () => {
  const offer = await aRunning()
  const sent = texts('a', 'b')
  assert.deepEqual(await link.report(offer, 2, ...sent), { kind: 'ack', seq: 3 })
  assert.deepEqual(await link.report(offer, 2, ...sent), { kind: 'ack', seq: 3 })
  assert.deepEqual(await link.report(offer, 1, start(), ...sent), { kind: 'ack', seq: 3 })
  assert.deepEqual(await lines(offer.run), ['a', 'b'])
})

test('a batch that overlaps with what is there adds only what is new', async () => {
  const offer = await aRunning()
  await link.report(offer, 2, ...texts('a', 'b', 'c'))
  assert.deepEqual(await link.report(offer, 3, ...texts('b', 'c', 'd')), { kind: 'ack', seq: 5 })
  assert.deepEqual(await lines(offer.run), ['a', 'b', 'c', 'd'])
})

test('after a gap the agent is told from where to send again', async () => {
  const offer = await aRunning()
  assert.deepEqual(await link.report(offer, 5, ...texts('later')), { kind: 'resume', seq: 1 })
  assert.deepEqual(await lines(offer.run), [])
  assert.deepEqual(await link.report(offer, 2, ...texts('a', 'b', 'c', 'later')), { kind: 'ack', seq: 5 })
  assert.deepEqual(await lines(offer.run), ['a', 'b', 'c', 'later'])
})

test('what is asked for again and comes with the same commit is not asked for behind its acknowledgement', async () => {
  const offer = await aRunning()
  const { run, epoch } = offer
  const batchAt = (first: number, ...names: string[]) => ({ run, epoch, first, entries: texts(...names) })
  link.send({ t: 'entries', batches: [batchAt(5, 'later'), batchAt(2, 'a', 'b', 'c', 'later')] })
  assert.deepEqual(await link.verdict(offer), { kind: 'ack', seq: 5 })
  assert.deepEqual(await link.report(offer, 6, ...texts('more')), { kind: 'ack', seq: 6 })
  assert.deepEqual(await lines(run), ['a', 'b', 'c', 'later', 'more'])
})

test('fifty batches at once leave cursors without a gap, and the last number acknowledged is the last', async () => {
  const offer = await aRunning()
  const batches = Array.from({ length: 50 }, (_, i) => ({
    first: 2 + i * 4,
    entries: texts(`${i}a`, `${i}b`, `${i}c`, `${i}d`),
  }))
  for (const batch of batches) link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, ...batch }] })
  for (;;) {
    const verdict = await link.verdict(offer)
    assert.equal(verdict.kind, 'ack')
    if (verdict.kind === 'ack' && verdict.seq === 201) break
  }
  assert.deepEqual(
    await lines(offer.run),
    batches.flatMap((_, i) => [`${i}a`, `${i}b`, `${i}c`, `${i}d`]),
  )
})

test('fifty runs at once, from two sockets, get every entry once', async () => {
  const other = await anAgent(c)
  const otherLink = await other.connect()
  await Promise.all(Array.from({ length: 50 }, () => aRun(c, { workflow: 'any' })))
  const held = [
    ...(await agent.poll(25)).map((offer) => ({ offer, link })),
    ...(await other.poll(25)).map((offer) => ({ offer, link: otherLink })),
  ]
  assert.equal(held.length, 50)
  await link.accept(...held.slice(0, 25).map(({ offer }) => offer))
  await otherLink.accept(...held.slice(25).map(({ offer }) => offer))
  await Promise.all(
    held.map(async ({ offer, link }) => {
      await Promise.all(
        [1, 1, 2].map((first) => link.report(offer, first, ...[start(), line('a'), line('b')].slice(first - 1))),
      )
      await link.report(offer, 4, end(returned(null)))
    }),
  )
  other.close()
  for (const { offer } of held) assert.deepEqual(await lines(offer.run), ['a', 'b'])
})

test('another epoch and another runner are stale, and change nothing', async () => {
  const offer = await aRunning()
  const before = await logOf(c, offer.run)
  for (const epoch of [offer.epoch - 1, offer.epoch + 1]) {
    assert.deepEqual(await link.report({ run: offer.run, epoch }, 2, line('from the past')), { kind: 'stale' })
  }
  const stranger = await anAgent(c)
  const theirs = await stranger.connect()
  assert.deepEqual(await theirs.report(offer, 2, line('from elsewhere')), { kind: 'stale' })
  assert.deepEqual(await theirs.report(offer, 1, start()), { kind: 'stale' })
  assert.deepEqual(await theirs.report({ run: newId('run'), epoch: 1 }, 1, start()), { kind: 'stale' })
  stranger.close()
  assert.deepEqual(await logOf(c, offer.run), before)
})

test('an end that is sent twice is acknowledged twice and happens once; what comes after it is stale', async () => {
  const offer = await aRunning()
  const last = [line('last words'), end(returned(1))]
  assert.deepEqual(await link.report(offer, 2, ...last), { kind: 'ack', seq: 3 })
  assert.deepEqual(await link.report(offer, 2, ...last), { kind: 'ack', seq: 3 })
  assert.deepEqual(await link.report(offer, 4, line('after the end')), { kind: 'stale' })
  const types = await typesOf(c, offer.run)
  assert.equal(types.filter((type) => type === 'run.completed').length, 1)
  assert.equal(types.at(-1), 'run.completed')
})

test('an end that is sent again after a crash is acknowledged, until the run is given to somebody', async () => {
  const offer = await aRunning()
  const crash = end({ how: 'killed', signal: 'SIGKILL' })
  await link.report(offer, 2, crash)
  assert.deepEqual(await link.report(offer, 2, crash), { kind: 'ack', seq: 2 })
  const again = await takeNext(agent, link)
  assert.equal(again.run, offer.run)
  assert.deepEqual(await link.report(offer, 2, crash), { kind: 'stale' })
  assert.equal((await runOf(c, offer.run)).attempt, 2)
  await link.report(again, 2, end(returned(1)))
})

test('entries behind an end in the same batch are passed over', async () => {
  const offer = await aRunning()
  assert.deepEqual(await link.report(offer, 2, end(returned(1)), line('a'), end(returned(2))), { kind: 'ack', seq: 4 })
  assert.deepEqual((await typesOf(c, offer.run)).slice(-2), ['output', 'run.completed'])
})

test('an event of an unknown type, or one that only the coordinator may write, is shown as what it is', async () => {
  const offer = await aRunning()
  const at = Date.now()
  const types = ['run.completed', 'output', '__proto__', 'agent.text']
  await link.report(offer, 2, ...types.map((type): Entry => ['e', at, type, '{}']))
  const shown = (await logOf(c, offer.run)).slice(3)
  assert.deepEqual(
    shown.map(({ type }) => type),
    types.map(() => 'log.stderr'),
  )
  for (const [i, { data }] of shown.entries()) assert.match(data.text as string, new RegExp(`unknown type ${types[i]}`))
  assert.equal((await runOf(c, offer.run)).status, 'running')
})

test('data of more than 64 KiB are named by their size, counted in bytes', async () => {
  const offer = await aRunning()
  const LIMIT = 66 * 1024
  const data = (text: string): Entry => ['e', Date.now(), 'log.stdout', JSON.stringify({ text })]
  await link.report(offer, 2, data('x'.repeat(LIMIT - 11)), data('x'.repeat(LIMIT - 10)), data('€'.repeat(23_000)))
  const [fits, long, wide] = (await logOf(c, offer.run)).slice(3).map((event) => event.data)
  assert.equal((fits!.text as string).length, LIMIT - 11)
  assert.deepEqual(long, { truncated: true, bytes: LIMIT + 1, limitBytes: LIMIT })
  assert.deepEqual(wide, { truncated: true, bytes: 69_011, limitBytes: LIMIT })
})

test('data that is no JSON object is told of, so that the log stays readable', async () => {
  const offer = await aRunning()
  const bad = ['{', '[1]', '"x"', '', '{"a":"\u0000"}', '{} {}']
  const entries = bad.map((dataText): Entry => ['e', Date.now(), 'phase', dataText])
  assert.deepEqual(await link.report(offer, 2, ...entries, ['e', Date.now(), 'phase', '{\n"name": "ok"\r\n}']), {
    kind: 'ack',
    seq: 8,
  })
  const shown = (await logOf(c, offer.run)).slice(3)
  assert.deepEqual(
    shown.map(({ type }) => type),
    [...bad.map(() => 'log.stderr'), 'phase'],
  )
  assert.deepEqual(shown.at(-1)?.data, { name: 'ok' })
})

test('characters that PostgreSQL does not hold come through in their escapes', async () => {
  const offer = await aRunning()
  await link.report(offer, 2, line('\u0000 \ud800 \udfff \u2028 😀'))
  assert.deepEqual(await lines(offer.run), ['\u0000 \ud800 \udfff \u2028 😀'])
})

/** Somebody waits for what this transaction has locked. */
const isWaiting = (tx: Tx) => tx`select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))`

test('a run that somebody holds does not hold up other runs', async () => {
  const [held, other] = [await aRunning(), await aRunning()]
  const waits = await c.db.begin(async (tx) => {
    await tx`select 1 from runs where id = ${held.run} for update`
    const waits = link.report(held, 2, line('late'))
    await untilPolled('its commit to wait', async () => (await isWaiting(tx)).length > 0)
    assert.deepEqual(await link.report(other, 2, line('early')), { kind: 'ack', seq: 2 })
    return { verdict: waits }
  })
  assert.deepEqual(await waits.verdict, { kind: 'ack', seq: 2 })
  assert.deepEqual(await lines(held.run), ['late'])
})

// Two frames that named the run of another org thousands of times kept that run waiting for five seconds.
test('what another runner says of a run locks nothing of it, and is stale at once', async () => {
  const offer = await aRunning()
  const stranger = await anAgent(c, { name: 'stranger' })
  const theirs = await stranger.connect()
  await c.db.begin(async (tx) => {
    await tx`select 1 from runs where id = ${offer.run} for update`
    for (const entry of [line('mine'), end(returned(1))])
      assert.deepEqual(await theirs.report(offer, 2, entry), { kind: 'stale' })
  })
  stranger.close()
  assert.deepEqual(await link.report(offer, 2, line('own'), end(returned(1))), { kind: 'ack', seq: 3 })
})
