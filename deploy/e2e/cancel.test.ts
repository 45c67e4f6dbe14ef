import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileInstance } from './_kit/file-instance.ts'
import { deploy, ended, get, hasSaid, programFiles, textsOf, trigger, typesOf, wholeLog } from './_kit/runs.ts'

/** Two slots, so that a third run has to wait. */
const { current } = fileInstance({ env: { WINDLASS_AGENT_SLOTS: '2' }, programs: ['healthy', 'listens'] })

const STARTED = ['run.queued', 'run.pending', 'run.running']

test('a program that listens to its signal puts things in order and is cancelled', async () => {
  const { client } = current()
  const id = await trigger(client, 'listens', { tag: 'a' })
  await hasSaid(client, id, 'log.stdout', 'begun a')
  const { run: asked } = await client.runs.cancel({ run: id, reason: 'enough' })
  // On a busy machine it has ended before the answer is made.
  assert.match(asked.status, /^cancel(ling|led)$/)
  const run = await ended(client, id)
  assert.equal(run.status, 'cancelled')
  const events = await wholeLog(client, id)
  assert.deepEqual(textsOf(events), ['begun a', 'tidied up a'])
  assert.deepEqual(typesOf(events), [...STARTED, 'run.cancelling', 'run.cancelled'])
  assert.equal(events.at(-1)?.data['forced'], false)
})

test('a program that ignores everything is killed after its grace', async () => {
  const { client } = current()
  await deploy(client, programFiles('never-ends', { slug: 'stubborn', timeout: '5m', cancelGrace: '500ms' }))
  const id = await trigger(client, 'stubborn')
  await hasSaid(client, id, 'log.stdout', 'begun')
  const since = performance.now()
  await client.runs.cancel({ run: id })
  const run = await ended(client, id)
  const tookMs = performance.now() - since
  assert.equal(run.status, 'cancelled')
  assert.ok(tookMs >= 450, `it had ${tookMs} ms of 500`)
  assert.equal((await wholeLog(client, id)).at(-1)?.data['forced'], true)
})

test('a queued run is cancelled at once and never begins', async () => {
  const { client } = current()
  const busy = await Promise.all(['b', 'c'].map((tag) => trigger(client, 'listens', { tag })))
  await Promise.all(busy.map((id) => hasSaid(client, id, 'log.stdout', 'begun')))
  const id = await trigger(client, 'listens', { tag: 'd' })
  assert.equal((await get(client, id)).status, 'queued')
  const { run } = await client.runs.cancel({ run: id })
  assert.equal(run.status, 'cancelled')
  assert.deepEqual(typesOf(await wholeLog(client, id)), ['run.queued', 'run.cancelling', 'run.cancelled'])
  for (const other of busy) await client.runs.cancel({ run: other })
  for (const other of busy) assert.equal((await ended(client, other)).status, 'cancelled')
})

test('asking twice is no error, and a run that has completed cannot be cancelled', async () => {
  const { client } = current()
  const id = await trigger(client, 'listens', { tag: 'e' })
  await hasSaid(client, id, 'log.stdout', 'begun')
  await client.runs.cancel({ run: id })
  await client.runs.cancel({ run: id })
  await ended(client, id)
  assert.equal((await client.runs.cancel({ run: id })).run.status, 'cancelled')
  assert.equal(typesOf(await wholeLog(client, id)).filter((type) => type === 'run.cancelling').length, 1)
  const done = await trigger(client, 'healthy', { takesMs: 0 })
  await ended(client, done)
  await assert.rejects(client.runs.cancel({ run: done }), { code: 'RUN_ALREADY_FINISHED', status: 409 })
})

test('a retry is a new run with the same input', async () => {
  const { client } = current()
  const first = await trigger(client, 'healthy', { takesMs: 1 })
  await ended(client, first)
  const { run: second } = await client.runs.retry({ run: first })
  assert.notEqual(second.id, first)
  assert.equal(second.retryOf, first)
  assert.equal((await ended(client, second.id)).status, 'completed')
  assert.deepEqual((await client.runs.input({ run: second.id })).input, { takesMs: 1 })
})
