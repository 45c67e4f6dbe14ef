import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { CHANNELS } from '@windlass/shared/model/event.ts'
import { within } from '@windlass/shared/time.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { SseSink } from '../../events/pour.ts'
import { liveStream } from '../../events/stream.ts'
import { aRunningAgent, end, type Held, line, returned, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, logOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aReader, type SseReader } from './sse-reader.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const HOUR_MS = 3_600_000

let c: TestCoordinator
const agents: TestAgent[] = []
const readers: SseReader[] = []

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  for (const reader of readers) reader.leave()
  for (const agent of agents) agent.close()
  await c.stop()
})

async function running(): Promise<Held> {
  await aRun(c, { workflow: 'any' })
  const held = await aRunningAgent(c)
  agents.push(held.agent)
  return held
}

async function reading(
  run: string,
  query = '',
  more: { lastEventId?: string; at?: TestCoordinator } = {},
): Promise<SseReader> {
  const reader = await aReader(more.at ?? c, `/v1/runs/${run}/events/stream${query}`, more.lastEventId)
  readers.push(reader)
  return reader
}

const EVERYTHING = `?channels=${CHANNELS.join(',')}`
const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => String(from + i))

test('a reader gets the log so far, then what follows, then done, and the stream ends', async () => {
  const { link, offer } = await running()
  await link.report(offer, 2, line('before'))
  const reader = await reading(offer.run, EVERYTHING)
  await reader.has(4)
  await link.report(offer, 3, line('live'))
  await reader.has(5)
  await link.report(offer, 4, end(returned({ n: 1 })))
  const frames = await reader.ended()
  assert.deepEqual(
    frames.map(({ event }) => event),
    ['run.queued', 'run.pending', 'run.running', 'log.stdout', 'log.stdout', 'output', 'run.completed', 'done'],
  )
  assert.deepEqual(
    frames.slice(0, -1).map(({ id }) => id),
    upTo(7),
  )
  // A client that keeps the last id must not take `done` for an event.
  assert.deepEqual([frames.at(-1)?.id, frames.at(-1)?.data], [undefined, '{"done":true}'])
  const log = await logOf(c, offer.run)
  assert.deepEqual(
    frames.slice(0, -1).map(({ data }) => JSON.parse(data) as unknown),
    log,
  )
})

test('each frame is one piece with its id last', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const reader = await reading(id)
  await reader.has(1)
  assert.match(reader.text(), /event: run\.queued\ndata: \{.*\}\nid: 1\n\n/)
  reader.leave()
})

test('a reader of a finished run gets its log and done at once', async () => {
  const { link, offer } = await running()
  await link.report(offer, 2, end(returned(1)))
  const frames = await (await reading(offer.run)).ended()
  assert.equal(frames.at(-1)?.event, 'done')
  assert.equal(frames.length, 6)
})

test('`since` and `Last-Event-ID` say from where on, and the latter counts', async () => {
  const { link, offer } = await running()
  await link.report(offer, 2, line('a'), line('b'), end(returned(1)))
  const idsOf = async (query: string, lastEventId?: string) =>
    (await (await reading(offer.run, query, { lastEventId })).ended()).slice(0, -1).map(({ id }) => id)
  assert.deepEqual(await idsOf(`${EVERYTHING}&since=3`), upTo(7, 4))
  assert.deepEqual(await idsOf(EVERYTHING, '5'), upTo(7, 6))
  assert.deepEqual(await idsOf(`${EVERYTHING}&since=2`, '5'), upTo(7, 6))
  assert.deepEqual(await idsOf(`${EVERYTHING}&since=6`, '5'), upTo(7, 6))
  assert.deepEqual(await idsOf(EVERYTHING, 'no number'), upTo(7))
  assert.deepEqual(await idsOf(EVERYTHING, '7'), [])
  assert.deepEqual(await idsOf(`${EVERYTHING}&since=${Number.MAX_SAFE_INTEGER}`), [])
})

test('a reader who comes back with the last id has missed nothing and sees nothing twice', async () => {
  const { link, offer } = await running()
  const seen: string[] = []
  let seq = 1
  for (let round = 0; round < 5; round++) {
    const reader = await reading(offer.run, EVERYTHING, { lastEventId: seen.at(-1) })
    await link.report(offer, ++seq, line(`${seq}`))
    await reader.has(1)
    seen.push(...reader.leave().map(({ id }) => id!))
    await link.report(offer, ++seq, line(`${seq}`))
  }
  await link.report(offer, ++seq, end(returned(1)))
  const last = await (await reading(offer.run, EVERYTHING, { lastEventId: seen.at(-1) })).ended()
  seen.push(...last.slice(0, -1).map(({ id }) => id!))
  assert.deepEqual(seen, upTo((await logOf(c, offer.run)).length))
})

test('a log of many large events arrives whole, page by page', async () => {
  const { link, offer } = await running()
  const large = line('x'.repeat(65_000))
  await link.report(offer, 2, ...Array.from({ length: 150 }, () => large), end(returned(1)))
  const ids: string[] = []
  // A reader that falls behind is cut off and comes back, as any client does.
  for (let visits = 0; visits < 20; visits++) {
    const frames = await (await reading(offer.run, EVERYTHING, { lastEventId: ids.at(-1) })).ended()
    ids.push(...frames.flatMap(({ id }) => id ?? []))
    if (frames.at(-1)?.event === 'done') break
  }
  assert.deepEqual(ids, upTo(155))
})

test('two readers of other channels and cursors each get their own', async () => {
  const { link, offer } = await running()
  const [logs, phases] = [
    await reading(offer.run, '?channels=log'),
    await reading(offer.run, '?channels=phase,lifecycle&since=2'),
  ]
  for (let i = 0; i < 30; i++) void link.report(offer, 2 + i, i % 2 ? ['e', 1, 'phase', '{}'] : line(`${i}`))
  await logs.has(15)
  await link.report(offer, 32, end(returned(1)))
  const [first, second] = await Promise.all([logs.ended(), phases.ended()])
  assert.deepEqual(new Set(first.map(({ event }) => event)), new Set(['log.stdout', 'done']))
  assert.equal(first.length, 16)
  assert.deepEqual(
    second.map(({ event }) => event),
    ['run.running', ...Array<string>(15).fill('phase'), 'run.completed', 'done'],
  )
})

test('fifty readers and fifty batches at once: every reader sees every cursor once and in order', async () => {
  const { link, offer } = await running()
  const all = await Promise.all(
    Array.from({ length: 50 }, (_, i) => reading(offer.run, `${EVERYTHING}&since=${i % 4}`)),
  )
  const batches = Array.from({ length: 50 }, (_, i) => link.report(offer, 2 + i * 3, line('a'), line('b'), line('c')))
  await Promise.all(batches)
  await link.report(offer, 152, end(returned(1)))
  for (const [i, reader] of all.entries()) {
    const frames = await reader.ended()
    assert.deepEqual(
      frames.slice(0, -1).map(({ id }) => id),
      upTo(155, (i % 4) + 1),
    )
  }
  await until('the readers to be gone', () => c.deps.tails.readers() === 0)
})

test('a reader at one coordinator sees at once what an agent reports to another', async () => {
  // No reader looks by itself: what it gets, the bell has brought.
  const second = await c.another({}, { lookAgainMs: { polls: HOUR_MS, readers: HOUR_MS } })
  const { link, offer } = await running()
  const reader = await reading(offer.run, EVERYTHING, { at: second })
  await reader.has(3)
  await link.report(offer, 2, line('from afar'))
  await reader.has(4)
  await link.report(offer, 3, end(returned(1)))
  await reader.ended()
})

test("another org's run and an unknown one are 404, not an empty stream", async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const { apiKey } = await anOrg(c)
  for (const [run, key] of [
    [id, apiKey],
    [newId('run'), c.apiKey],
  ] as const) {
    const response = await fetch(`${c.url}/v1/runs/${run}/events/stream`, {
      headers: { authorization: `Bearer ${key}` },
    })
    assert.equal(response.status, 404)
    assert.match(await response.text(), /NOT_FOUND/)
  }
})

test('a reader who goes leaves nothing behind', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const reader = await reading(id)
  await reader.has(1)
  reader.leave()
  await until('the reader to be gone', () => c.deps.tails.readers() === 0)
})

test('a reader who takes nothing is written to no more, and others go on', async () => {
  const { offer } = await running()
  const many = 30_000
  const query = { run: offer.run, since: 0, channels: [...CHANNELS] }
  const stuck = stuckSink()
  const pouring = (await liveStream(c.deps, c.orgId, query))(stuck.sink)
  const brisk = await reading(offer.run, EVERYTHING)
  await brisk.has(3)
  await c.db.begin(async (tx) => {
    await tx`
      insert into run_events (run_id, cursor, at, channel, type, data)
      select ${offer.run}, n, 0, 'log', 'log.stdout', '{}'
      from generate_series(4, ${many}::int) n`
    await tx`update runs set cursor = ${many} where id = ${offer.run}`
  })
  c.deps.tails.ring(offer.run)
  await brisk.has(many)
  assert.ok(stuck.chunks() <= 2, 'it was written to while it took nothing')
  stuck.cut()
  await within(DEADLINE_MS, pouring, 'its stream goes on')
  assert.deepEqual(
    brisk.leave().map(({ id }) => Number(id)),
    Array.from({ length: many }, (_, i) => i + 1),
  )
})

/** Takes its first words and then none: `write` says so, and `drained` never comes by itself. */
function stuckSink() {
  const gone = new AbortController()
  const drained = Promise.withResolvers<void>()
  let chunks = 0
  const cut = () => {
    gone.abort()
    drained.resolve()
  }
  const sink: SseSink = {
    write: () => ++chunks === 1,
    drained: () => drained.promise,
    close: cut,
    cut,
    gone: gone.signal,
  }
  return { sink, cut, chunks: () => chunks }
}
