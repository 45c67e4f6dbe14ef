import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, returned, start } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, refusal, runOf, type TestCoordinator, typesOf } from '../_kit/coordinator.ts'
import { aBlockedRun, accepted, aParkedRun, type Crew, MISMATCH, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const restart = async (run: string) => (await c.call(ops.runs.restart, { run: run })).run

test('a blocked run starts again from the top, as its next attempt', async () => {
  const blocked = await aBlockedRun(crew, { workflow: 'any' })
  const before = await runOf(c, blocked.run)
  assert.equal(before.status, 'sleeping')
  const { expected, received, at, code } = before.blocked!
  assert.deepEqual({ expected, received, at, code }, { ...MISMATCH, code: 'REPLAY_MISMATCH' })

  const run = await restart(blocked.run)
  assert.deepEqual([run.status, run.attempt, run.blocked, run.waiting], ['queued', 2, null, null])
  const offer = await accepted(crew)
  assert.deepEqual([offer.run, offer.attempt, offer.replay], [blocked.run, 2, false])
  await crew.link.report(offer, 1, start(), end(returned('done')))
  assert.equal((await runOf(c, blocked.run)).status, 'completed')
  const types = await typesOf(c, blocked.run)
  assert.deepEqual(types.slice(types.indexOf('run.blocked')), [
    'run.blocked',
    'run.restarted',
    'run.queued',
    'run.pending',
    'run.running',
    'output',
    'run.completed',
  ])
  const event = (await logOf(c, blocked.run)).find((event) => event.type === 'run.restarted')
  assert.equal(event?.data['attempt'], 2)
  assert.match(String(event?.data['by']), /^key_/)
})

test('blocked runs are found among the others', async () => {
  const { run } = await aBlockedRun(crew, { workflow: 'any' })
  const waiting = await aParkedRun(crew, { workflow: 'any' }, sleepFor())
  const listed = async (filter: { blocked?: boolean; status?: ['sleeping'] | ['awaiting_input'] }) =>
    (await c.call(ops.runs.list, { org: c.org, ...filter, limit: 100 })).runs.map(({ id }) => id)
  assert.deepEqual(await listed({ blocked: true }), [run])
  assert.deepEqual(await listed({ blocked: true, status: ['sleeping'] }), [run])
  assert.deepEqual(await listed({ blocked: true, status: ['awaiting_input'] }), [])
  const others = await listed({ blocked: false })
  assert.deepEqual([others.includes(waiting.run), others.includes(run)], [true, false])
  await restart(run)
  assert.deepEqual(await listed({ blocked: true }), [])
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), end(returned('done')))
})

test('of twenty restarts at once one counts', async () => {
  const { run } = await aBlockedRun(crew, { workflow: 'any' })
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => restart(run)))
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
  for (const result of results) if (result.status === 'rejected') refusal('RUN_NOT_BLOCKED')(result.reason as Error)
  assert.equal((await runOf(c, run)).attempt, 2)
  assert.equal((await c.db`select 1 from run_queue where run_id = ${run}`).length, 1)
  await c.call(ops.runs.cancel, { run })
})

test('a run that is not blocked is refused, and goes on as it was', async () => {
  const queued = await aRun(c, { workflow: 'any' })
  await assert.rejects(restart(queued.id), refusal('RUN_NOT_BLOCKED'))
  assert.equal((await c.db`select 1 from run_queue where run_id = ${queued.id}`).length, 1)
  await c.call(ops.runs.cancel, { run: queued.id })
  await assert.rejects(restart(queued.id), refusal('RUN_NOT_BLOCKED'))
  const sleeping = await aParkedRun(crew, { workflow: 'any' }, sleepFor())
  await assert.rejects(restart(sleeping.run), refusal('RUN_NOT_BLOCKED'))
  assert.equal((await runOf(c, sleeping.run)).status, 'sleeping')
})

test('what the former attempt has bought is handed to the next, unless the descriptor wants a fresh start', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { retries: { onCrash: 'fresh' } } })
  for (const [workflow, entries] of [
    ['any', 1],
    [slug, 0],
  ] as const) {
    const { run } = await aBlockedRun(crew, { workflow })
    await restart(run)
    const offer = await accepted(crew)
    assert.deepEqual([offer.run, (JSON.parse(offer.journal.text ?? '[]') as unknown[]).length], [run, entries])
    await crew.link.report(offer, 1, start(), end(returned(1)))
  }
})

test('a restart and a cancel at once leave the run cancelled, and nothing of it in the queue', async () => {
  for (let round = 0; round < 5; round++) {
    const { run } = await aBlockedRun(crew, { workflow: 'any' })
    const [restarted, cancelled] = await Promise.allSettled([restart(run), c.call(ops.runs.cancel, { run })])
    assert.equal(cancelled.status, 'fulfilled')
    if (restarted.status === 'rejected') refusal('RUN_NOT_BLOCKED')(restarted.reason as Error)
    assert.equal((await runOf(c, run)).status, 'cancelled')
    assert.equal((await c.db`select 1 from run_queue where run_id = ${run}`).length, 0)
  }
})
