import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import {
  anOrg,
  aCoordinator,
  aRun,
  refusal,
  type RunAsk,
  runOf,
  type TestCoordinator,
  typesOf,
} from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  for (const name of ['staging', 'production']) await anEnvironment(c, name)
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const retry = async (run: string, version?: number): Promise<Run> =>
  (await c.call(ops.runs.retry, { run, version })).run

const ENDS: Record<'completed' | 'failed' | 'cancelled', (ask: RunAsk) => Promise<Run>> = {
  completed: async (ask) => {
    const { id } = await aRun(c, ask)
    await link.report(await takeNext(agent, link), 2, end(returned(1)))
    return runOf(c, id)
  },
  failed: async (ask) => {
    const { id } = await aRun(c, ask)
    await link.report(await takeNext(agent, link), 2, end({ how: 'exited', exitCode: 1 }))
    return runOf(c, id)
  },
  cancelled: async (ask) => (await c.call(ops.runs.cancel, { run: (await aRun(c, ask)).id })).run,
}

for (const status of ['completed', 'failed', 'cancelled'] as const) {
  test(`a ${status} run is retried as a new run with the same input, environment, tags and priority`, async () => {
    const first = await ENDS[status]({
      workflow: 'any',
      input: { n: [1, '\u0000'] },
      environment: 'staging',
      tags: ['a', 'b'],
      priority: 5,
    })
    assert.equal(first.status, status)
    const again = await retry(first.id)
    assert.notEqual(again.id, first.id)
    assert.deepEqual([again.status, again.retryOf, again.attempt], ['queued', first.id, 1])
    assert.deepEqual([again.trigger.kind, again.trigger.id], ['retry', first.id])
    assert.deepEqual([again.environment, again.tags, again.priority], ['staging', ['a', 'b'], 5])
    assert.deepEqual(await c.call(ops.runs.input, { run: again.id }), { input: { n: [1, '\u0000'] } })
    assert.deepEqual(await runOf(c, again.id), again)
    assert.deepEqual(await runOf(c, first.id), first)
    assert.deepEqual(await typesOf(c, again.id), ['run.queued'])
    await c.call(ops.runs.cancel, { run: again.id })
  })
}

test('a retry takes the text of the input as it is: nobody parses it', async () => {
  const { id } = await aRun(c, { workflow: 'any', input: { n: 1 } })
  await c.db`update runs set input = '{"n":1.00}' where id = ${id}`
  const { run } = await c.call(ops.runs.retry, { run: id })
  const [row] = await c.db<{ input: string }[]>`select input from runs where id = ${run.id}`
  assert.equal(row?.input, '{"n":1.00}')
})

test('a retry runs the current version, or the one that is named', async () => {
  const workflow = await aWorkflow(c)
  const first = await ENDS.cancelled({ workflow: workflow.slug })
  await aVersion(c, workflow)
  assert.equal((await retry(first.id)).workflow.version, 2)
  assert.equal((await retry(first.id, 1)).workflow.version, 1)
  await assert.rejects(retry(first.id, 3), refusal('NOT_FOUND'))
})

test('a run without an environment is retried without one', async () => {
  const workflow = await aWorkflow(c)
  const first = await ENDS.cancelled({ workflow: workflow.slug })
  assert.equal((await retry(first.id)).environment, null)
})

test('an input that a newer version does not take any more is refused with its path', async () => {
  const workflow = await aWorkflow(c)
  const first = await ENDS.cancelled({ workflow: workflow.slug, input: { n: 1 } })
  await aVersion(c, workflow, { inputSchema: { type: 'object', properties: { n: { type: 'string' } } } })
  await assert.rejects(retry(first.id), refusal('VALIDATION_FAILED', 'input.n'))
  assert.equal((await retry(first.id, 1)).workflow.version, 1)
})

test("another org's run and an unknown one look absent", async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const { apiKey } = await anOrg(c)
  await assert.rejects(c.call(ops.runs.retry, { run: id }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(retry(newId('run')), refusal('NOT_FOUND'))
})
