import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { EVENT_PAGE_BYTES, EVENT_PAGE_LEAST, type RunEvent } from '@windlass/shared/model/event.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { aRunningAgent, end, type Held, line, returned, takeNext } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let held: Held
let run: string

// 1 queued, 2 pending, 3 running, then line and phase in turn up to 23, and two more when it ends.
before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  run = (await aRun(c, { workflow: 'any' })).id
  held = await aRunningAgent(c)
  const entries = Array.from({ length: 20 }, (_, i) =>
    i % 2 ? (['e', 1, 'phase', `{"n":${i}}`] as const) : line(`${i}`),
  )
  await held.link.report(held.offer, 2, ...entries)
})
after(async () => {
  held.agent.close()
  await c.stop()
})

type Query = Omit<ArgsOf<typeof ops.runs.events>, 'run'>
const read = (query: Query = {}) => c.call(ops.runs.events, { run, ...query })
const cursors = (events: RunEvent[]) => events.map((event) => event.cursor)
const ALL = ['lifecycle', 'phase', 'output', 'log', 'agent'] as const

async function pages(query: Query): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for (;;) {
    const { events, done } = await read({ ...query, since: all.at(-1)?.cursor ?? 0 })
    all.push(...events)
    if (done || events.length === 0) return all
  }
}

test('the default view leaves out logs and agent turns', async () => {
  const { events, done } = await read()
  assert.deepEqual(new Set(events.map((event) => event.channel)), new Set(['lifecycle', 'phase']))
  assert.equal(events.length, 13)
  assert.equal(done, false)
})

test('channels choose what is read, and a wrong one is told', async () => {
  assert.equal((await read({ channels: ['log'] })).events.length, 10)
  assert.equal((await read({ channels: [...ALL] })).events.length, 23)
  assert.deepEqual((await read({ channels: ['agent', 'output'] })).events, [])
  const get = (query: string) => rawCall(c, 'GET', `/v1/runs/${run}/events?${query}`)
  assert.equal(((await (await get('channels=log,phase')).json()) as { events: [] }).events.length, 20)
  for (const query of ['channels=logs', 'since=-1', 'since=1.5', 'since=x', 'limit=0', 'limit=1001', 'from=1']) {
    assert.equal((await get(query)).status, 400, query)
  }
})

test('pages of any size give the same log', async () => {
  const { events } = await read({ channels: [...ALL] })
  assert.deepEqual(
    cursors(events),
    Array.from({ length: 23 }, (_, i) => i + 1),
  )
  for (const limit of [1, 7, 22, 23, 24])
    assert.deepEqual(await pages({ channels: [...ALL], limit }), events, String(limit))
  assert.deepEqual(cursors(await pages({ channels: ['phase'], limit: 3 })), [5, 7, 9, 11, 13, 15, 17, 19, 21, 23])
})

test('a cursor beyond the log gives nothing, however large it is', async () => {
  for (const since of [23, 24, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
    assert.deepEqual(await read({ since }), { events: [], done: false }, String(since))
  }
})

test('a log is done when the run has finished and the page reaches its end, not before', async () => {
  await held.link.report(held.offer, 22, end(returned({ n: 1 })))
  const all = await read({ channels: [...ALL] })
  assert.deepEqual([all.events.length, all.done], [25, true])
  assert.equal((await read({ channels: [...ALL], limit: 24 })).done, false)
  // A page that is full and ends with the last event says so, and spares its reader another.
  assert.equal((await read({ channels: [...ALL], limit: 25 })).done, true)
  assert.deepEqual(await read({ since: 25 }), { events: [], done: true })
  // Whoever reads other channels gets no last event to see, but the same word.
  assert.equal((await read({ channels: ['log'], limit: 10 })).done, false)
  assert.equal((await read({ channels: ['log'], limit: 11 })).done, true)
})

test('pages of large events end by their size, and go on where they ended', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const offer = await takeNext(held.agent, held.link)
  const large = line('x'.repeat(65_000))
  await held.link.report(offer, 2, ...Array.from({ length: 100 }, () => large))
  await held.link.report(offer, 102, ...Array.from({ length: 50 }, () => large), end(returned(1)))
  const bytesOf = (events: RunEvent[]) => events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0)
  const first = await c.call(ops.runs.events, { run: id, channels: [...ALL], limit: 1000 })
  assert.ok(bytesOf(first.events) >= EVENT_PAGE_BYTES && bytesOf(first.events) < EVENT_PAGE_BYTES + 65_536)
  assert.ok(first.events.length >= EVENT_PAGE_LEAST)
  assert.equal(first.done, false)
  assert.equal((await c.call(ops.runs.events, { run: id, channels: ['log'], limit: 1 })).events.length, 1)
  assert.equal((await logOf(c, id)).length, 155)
  // A tool shows 20,000 characters: it does not read 4 MiB for that.
  const { texts } = await tool(c, 'get_run_output', { run: id, channels: ['log'], limit: 1000 })
  assert.match(texts[1]!, /These are 1 of the [3-6] events of the page/)
})
