import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { aRunningAgent, end, type Held, line, returned } from '../_kit/agent.ts'
import { aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { tool } from '../_kit/mcp.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** Longer than any of these tests may take: who is not woken fails. */
const LONG = 25_000

type Args = ArgsOf<typeof ops.runs.events>
type Query = Omit<Args, 'run'>
const read = (run: Args['run'], query: Query, at = c) => at.call(ops.runs.events, { run, ...query })

const waiting = (count: number, at = c) => until(`${count} waiters`, () => at.deps.tails.readers() === count)

/** A run in execution, with three events: queued, pending and running. */
async function aRunGoing(): Promise<Held & { run: string; close: () => void }> {
  const { id } = await aRun(c, { workflow: 'any' })
  const held = await aRunningAgent(c)
  assert.equal(held.offer.run, id)
  return { ...held, run: id, close: () => held.agent.close() }
}

test('events that are there already are answered at once, and so is a run that is over', async () => {
  const { run, link, offer, close } = await aRunGoing()
  assert.equal((await read(run, { waitMs: LONG })).events.length, 3)
  await link.report(offer, 2, end(returned(1)))
  assert.deepEqual(await read(run, { since: 6, waitMs: LONG }), { events: [], done: true })
  assert.deepEqual(await read(run, { since: 1000, waitMs: LONG }), { events: [], done: true })
  close()
})

test('who waits is woken by the next event, and by the end of the run', async () => {
  const { run, link, offer, close } = await aRunGoing()
  const next = read(run, { since: 3, channels: ['log'], waitMs: LONG })
  await waiting(1)
  await link.report(offer, 2, line('news'))
  const { events, done } = await next
  assert.deepEqual([events.map(({ data }) => data['text']), done], [['news'], false])
  const last = read(run, { since: 4, channels: ['log'], waitMs: LONG })
  await waiting(1)
  await link.report(offer, 3, end(returned(1)))
  assert.deepEqual(await last, { events: [], done: true })
  close()
})

test('an event of a channel that was not asked for wakes nobody', async () => {
  const { run, link, offer, close } = await aRunGoing()
  const phases = read(run, { since: 3, channels: ['phase'], waitMs: LONG })
  await waiting(1)
  await link.report(offer, 2, line('not for you'), line('nor this'))
  assert.equal(c.deps.tails.readers(), 1)
  await link.report(offer, 4, ['e', Date.now(), 'phase', '{"name":"yours"}'])
  assert.deepEqual(
    (await phases).events.map(({ cursor }) => cursor),
    [6],
  )
  close()
})

test('when the time is up, the page is empty', async () => {
  const { run, close } = await aRunGoing()
  assert.deepEqual(await read(run, { since: 3, waitMs: 50 }), { events: [], done: false })
  assert.equal(c.deps.tails.readers(), 0)
  close()
})

test('200 wait for one run, all of them get the event, and none of them stays behind', async () => {
  const { run, link, offer, close } = await aRunGoing()
  const all = Array.from({ length: 200 }, (_, n) =>
    n % 2 ? read(run, { since: 3, channels: ['log'], waitMs: LONG }) : overMcp(run),
  )
  await waiting(200)
  await link.report(offer, 2, line('for all'))
  for (const { events } of await Promise.all(all))
    assert.deepEqual(
      events.map(({ cursor }) => cursor),
      [4],
    )
  await waiting(0)
  close()
})

async function overMcp(run: string): Promise<{ events: { cursor: number }[] }> {
  return (await tool(c, 'get_run_output', { run, since: 3, channels: ['log'], waitMs: LONG })).structured
}

test('a client that goes leaves no waiter behind, over REST and over MCP', async () => {
  const { run, close } = await aRunGoing()
  const headers = {
    authorization: `Bearer ${c.apiKey}`,
    'content-type': 'application/json',
    accept: 'application/json',
  }
  const leaving = new AbortController()
  const { signal } = leaving
  const rest = fetch(`${c.url}/v1/runs/${run}/events?since=3&waitMs=${LONG}`, { headers, signal })
  const params = { name: 'get_run_output', arguments: { run, since: 3, waitMs: LONG } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const mcp = fetch(`${c.url}/mcp/v1`, { method: 'POST', headers, body, signal })
  await waiting(2)
  leaving.abort()
  await Promise.all([assert.rejects(rest), assert.rejects(mcp)])
  await waiting(0)
  close()
})

test('an event that comes in through another coordinator wakes who waits here', async () => {
  const other = await c.another()
  const { run, link, offer, close } = await aRunGoing()
  const there = read(run, { since: 3, channels: ['log'], waitMs: LONG }, other)
  await waiting(1, other)
  await link.report(offer, 2, line('over there'))
  assert.equal((await there).events.length, 1)
  close()
})

test('a coordinator that stops lets nobody wait on', async () => {
  const other = await c.another()
  const { run, close } = await aRunGoing()
  const there = read(run, { since: 3, waitMs: LONG }, other)
  await waiting(1, other)
  await other.stop()
  assert.deepEqual(await there, { events: [], done: false })
  close()
})

test('nobody waits for a run that is not there, or longer than 25 s', async () => {
  await assert.rejects(read(newId('run'), { waitMs: LONG }), refusal('NOT_FOUND'))
  for (const waitMs of [25_001, -1, 0.5])
    await assert.rejects(read(newId('run'), { waitMs }), refusal('VALIDATION_FAILED', 'waitMs'))
})

test('who loses the credential while waiting is told nothing of what came', async () => {
  const { run, link, offer, close } = await aRunGoing()
  const session = { apiKey: await aSession(c.db, { orgId: c.orgId }) }
  const { apiKey, key } = await c.call(ops.keys.create, { org: c.org, name: 'reader', role: 'viewer' }, session)
  const next = c.call(ops.runs.events, { run, since: 3, channels: ['log'], waitMs: LONG }, { apiKey: key })
  await waiting(1)
  await c.call(ops.keys.revoke, { org: c.org, key: apiKey.id }, session)
  await Promise.all([assert.rejects(next, refusal('UNAUTHENTICATED')), link.report(offer, 2, line('a secret'))])
  close()
})
