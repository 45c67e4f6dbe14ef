import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type OrgId, type RunId } from '@windlass/shared/ids.ts'
import { rows } from '@windlass/shared/ops/events/ops.ts'
import { rows as runs } from '@windlass/shared/ops/runs/ops.ts'
import type { Tx } from '../../db/client.ts'
import { cleanOrgLogs } from '../../events/org-log.ts'
import { insert } from '../../events/store.ts'
import { aRunningAgent, end, line, returned, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { aReader, type SseFrame, type SseReader } from './sse-reader.ts'

const HOUR_MS = 3_600_000
const POSITION = /^[0-9a-f]{12}\.\d+$/

let c: TestCoordinator
const agents: TestAgent[] = []
const readers: SseReader[] = []

before(async () => {
  c = await aCoordinator()
})
after(async () => {
  for (const reader of readers) reader.leave()
  for (const agent of agents) agent.close()
  await c.stop()
})

/** An org with a workflow `any`, which nobody follows yet. */
async function ours(): Promise<TestCoordinator> {
  const own = asOwner(c, await anOrg(c))
  await aWorkflow(own, { slug: 'any' })
  return own
}

async function following(own: TestCoordinator, since?: string): Promise<SseReader> {
  const reader = await aReader(own, `/v1/orgs/${own.org}/events/stream`, since)
  readers.push(reader)
  await reader.has(1)
  return reader
}

/** What a transaction writes of a run of this org, whatever else it does. */
function tell(tx: Tx, orgId: OrgId, type: string, runId: RunId = newId('run')): PromiseLike<unknown> {
  return insert(tx, [{ runId, orgId, cursor: 1, at: 1, channel: 'lifecycle', type, dataText: '{}' }])
}

const typesOf = (frames: readonly SseFrame[]) => frames.map(({ event }) => event)
const written = async ({ orgId }: TestCoordinator) =>
  (await c.db<{ type: string }[]>`select type from org_events where org_id = ${orgId}`).length

test('a reader gets what happens to the runs of its org, in order, and nothing of another org', async () => {
  const own = await ours()
  const other = await ours()
  const [reader, elsewhere] = [await following(own), await following(other)]
  const run = await aRun(own, { workflow: 'any' })
  const { agent, link, offer } = await aRunningAgent(own)
  agents.push(agent)
  await link.report(offer, 2, line('no lifecycle'), end(returned({ n: 1 })))
  const frames = await reader.has(5)
  assert.deepEqual(typesOf(frames), ['ready', 'run.queued', 'run.pending', 'run.running', 'run.completed'])
  const [ready, ...events] = frames
  assert.match(ready!.id!, POSITION)
  assert.deepEqual(JSON.parse(ready!.data), { position: ready!.id })
  const log = await own.call(runs.events, { run: run.id, channels: ['lifecycle'] })
  assert.deepEqual(
    events.map(({ data }) => JSON.parse(data) as unknown),
    log.events.map(({ channel: _, ...event }) => ({ ...event, run: run.id, workflow: 'any' })),
  )
  const numbers = events.map(({ id }) => Number(id!.split('.')[1]))
  assert.deepEqual(numbers, [1, 2, 3, 4])
  assert.deepEqual(typesOf(elsewhere.leave()), ['ready'])
})

test('nothing is written for an org that nobody follows', async () => {
  const own = await ours()
  await aRun(own, { workflow: 'any' })
  assert.equal(await written(own), 0)
})

test('a reader who comes back with the last id has missed nothing and sees nothing twice', async () => {
  const own = await ours()
  const reader = await following(own)
  await aRun(own, { workflow: 'any' })
  const [, first] = await reader.has(2)
  reader.leave()
  const missed = [await aRun(own, { workflow: 'any' }), await aRun(own, { workflow: 'any' })]
  const again = await following(own, first!.id)
  const frames = await again.has(3)
  assert.deepEqual(typesOf(frames), ['ready', 'run.queued', 'run.queued'])
  assert.equal(frames[0]!.id, first!.id)
  assert.deepEqual(
    frames.slice(1).map(({ data }) => (JSON.parse(data) as { run: string }).run),
    missed.map(({ id }) => id),
  )
})

test('a log begins when those have ended who could not know of it', async () => {
  const own = await ours()
  let isCommitted = false
  let isEarly: Promise<boolean> | undefined
  let opened: Promise<SseReader> | undefined
  await c.db.begin(async (tx) => {
    await tell(tx, own.orgId, 'run.before')
    opened = following(own)
    await until('the log to be begun', async () => {
      const [log] = await c.db<{ isWhole: boolean }[]>`select is_whole from org_logs where org_id = ${own.orgId}`
      return log?.isWhole === false
    })
    isEarly = opened.then(() => !isCommitted)
    // A statement that begins now sees the log.
    await tell(tx, own.orgId, 'run.after')
    isCommitted = true
  })
  const reader = await opened!
  assert.equal(await isEarly, false, 'ready before the writer had ended')
  // It was committed before the log was whole, so readers of `ready` do not get it; what follows they do.
  await c.db.begin((tx) => tell(tx, own.orgId, 'run.next'))
  c.deps.tails.ring(own.orgId)
  const frames = await reader.has(2)
  assert.deepEqual(typesOf(frames), ['ready', 'run.next'])
})

test('what is committed later comes later, whatever was written first', async () => {
  const own = await ours()
  const reader = await following(own)
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>()
  const { promise: isWritten, resolve: noteWritten } = Promise.withResolvers<void>()
  const slow = c.db.begin(async (tx) => {
    await tell(tx, own.orgId, 'run.slow')
    noteWritten()
    await mayCommit
  })
  await isWritten
  await c.db.begin((tx) => tell(tx, own.orgId, 'run.quick'))
  c.deps.tails.ring(own.orgId)
  const last = (await reader.has(2)).at(-1)!
  assert.equal(last.event, 'run.quick')
  commit()
  await slow
  c.deps.tails.ring(own.orgId)
  assert.deepEqual(typesOf(await reader.has(3)), ['ready', 'run.quick', 'run.slow'])
  // A reader that had left in between gets it as well.
  assert.deepEqual(typesOf(await (await following(own, last.id)).has(2)), ['ready', 'run.slow'])
})

test('readers at two coordinators see 200 runs at the same positions, each once', async () => {
  const own = await ours()
  // No reader looks by itself: what it gets, the bell has brought.
  const second = await own.another({}, { lookAgainMs: { polls: HOUR_MS, readers: HOUR_MS } })
  const all = [await following(own), await following({ ...second, org: own.org, apiKey: own.apiKey })]
  const made = await Promise.all(Array.from({ length: 200 }, () => aRun(own, { workflow: 'any' })))
  const [here, there] = await Promise.all(all.map(async (reader) => (await reader.has(201)).slice(1)))
  assert.deepEqual(here, there)
  assert.deepEqual(
    here!.map(({ id }) => Number(id!.split('.')[1])),
    Array.from({ length: 200 }, (_, i) => i + 1),
  )
  const runsOf = (frames: SseFrame[]) => frames.map(({ data }) => (JSON.parse(data) as { run: string }).run).sort()
  assert.deepEqual(runsOf(here!), made.map(({ id }) => id).sort())
})

test('after a day events go, and whoever would miss some is told', async () => {
  const own = await ours()
  const reader = await following(own)
  await aRun(own, { workflow: 'any' })
  await aRun(own, { workflow: 'any' })
  const [ready, first, second] = await reader.has(3)
  reader.leave()
  await c.db`
    update org_events set written_at = now() - interval '25 hours'
    where org_id = ${own.orgId} and position = 1`
  await cleanOrgLogs(c.deps)
  assert.equal(await written(own), 1)
  const late = await following(own, ready!.id)
  const [reset] = await late.has(1)
  assert.equal(reset!.event, 'reset')
  assert.equal(reset!.id, second!.id)
  assert.deepEqual(typesOf(await (await following(own, first!.id)).has(2)), ['ready', 'run.queued'])
  await aRun(own, { workflow: 'any' })
  assert.deepEqual(typesOf(await late.has(2)), ['reset', 'run.queued'])
})

test('a log that nobody has read for a day begins anew, and its readers of then are told', async () => {
  const own = await ours()
  const reader = await following(own)
  await aRun(own, { workflow: 'any' })
  const [, last] = await reader.has(2)
  await c.db`update org_logs set kept_until = now() - interval '1 second' where org_id = ${own.orgId}`
  c.deps.tails.ring(own.orgId)
  // One that reads still, after an outage that was as long, has to come again.
  assert.equal((await reader.ended()).at(-1)!.event, 'done')
  await aRun(own, { workflow: 'any' })
  assert.equal(await written(own), 1)
  const again = await following(own, last!.id)
  assert.equal((await again.has(1))[0]!.event, 'reset')
  await aRun(own, { workflow: 'any' })
  assert.deepEqual(typesOf(await again.has(2)), ['reset', 'run.queued'])
})

test('while somebody reads, the end of the log is put off', async () => {
  const own = await ours()
  const reader = await following(own)
  await c.db`update org_logs set kept_until = now() + interval '30 minutes' where org_id = ${own.orgId}`
  c.deps.tails.ring(own.orgId)
  await until('the end to be put off', async () => {
    const [log] = await c.db<{ isLate: boolean }[]>`
      select kept_until > now() + interval '23 hours' as is_late from org_logs where org_id = ${own.orgId}`
    return log?.isLate === true
  })
  reader.leave()
})

test('what is no position is refused by name', async () => {
  const own = await ours()
  for (const since of ['7', 'abc.1', '5f0c2a9be4d1.', '5f0c2a9be4d1.99999999999999999'])
    await assert.rejects(own.call(rows.stream, { org: own.org, since }), {
      code: 'VALIDATION_FAILED',
      message: /since: not a position/,
    })
})
