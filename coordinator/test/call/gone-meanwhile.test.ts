// What a run or a delivery is about may be gone when its input has been judged at last.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Ask } from '@windlass/shared/wire/journal.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent } from '../_kit/agent.ts'
import { aConnection, aReceiverOf, push } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { aParkedRun, call } from '../_kit/waiting.ts'
import { whileJudged } from '../_kit/slow-judge.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 0 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

type Workflow = { id: string; slug: string }

const disable = ({ slug }: Workflow) => c.call(ops.workflows.disable, { org: c.org, workflow: slug })
const remove = ({ slug }: Workflow) => c.call(ops.workflows.delete, { org: c.org, workflow: slug, runs: 'cancel' })
const trigger = ({ slug }: Workflow) => c.call(ops.runs.trigger, { org: c.org, workflow: slug })
const runsOf = async ({ id }: Workflow) => (await c.db`select from runs where workflow_id = ${id}`).length

test('no run is queued of a workflow that was disabled meanwhile', async (t) => {
  const workflow = await aWorkflow(c)
  whileJudged(t, c, () => disable(workflow))
  await assert.rejects(trigger(workflow), refusal('WORKFLOW_DISABLED'))
  assert.equal(await runsOf(workflow), 0)
})

test('no run is queued of a workflow that was deleted meanwhile, though another has its slug', async (t) => {
  const workflow = await aWorkflow(c)
  whileJudged(t, c, async () => {
    await remove(workflow)
    await aWorkflow(c, { slug: workflow.slug })
  })
  await assert.rejects(trigger(workflow), refusal('NOT_FOUND'))
  assert.equal(await runsOf(workflow), 0)
})

test('no retry is queued of a workflow that was disabled meanwhile', async (t) => {
  const workflow = await aWorkflow(c)
  const { id } = await aRun(c, { workflow: workflow.slug })
  whileJudged(t, c, () => disable(workflow))
  await assert.rejects(c.call(ops.runs.retry, { run: id }), refusal('WORKFLOW_DISABLED'))
  assert.equal(await runsOf(workflow), 1)
})

test('no item of a batch is queued that was judged before its workflow was disabled', async (t) => {
  const workflow = await aWorkflow(c)
  const items = [{ input: 'quick' }, { input: 'slow' }]
  whileJudged(t, c, () => disable(workflow), '"slow"')
  const { results } = await c.call(ops.runs.batch, { org: c.org, workflow: workflow.slug, items })
  assert.deepEqual(
    results.map((result) => ('error' in result ? result.error.code : 'started')),
    ['WORKFLOW_DISABLED', 'WORKFLOW_DISABLED'],
  )
  assert.equal(await runsOf(workflow), 0)
})

test('no run is called that was judged before its workflow was deleted', async (t) => {
  const [parent, quick, slow] = await Promise.all([aWorkflow(c), aWorkflow(c), aWorkflow(c)])
  const agent = await anAgent(c)
  t.after(() => agent.close())
  whileJudged(t, c, () => remove(quick), '"slow"')
  const late: Ask = { for: 'child', workflow: slow.slug, inputText: '"slow"', version: null, tags: [], priority: 0 }
  const { run } = await aParkedRun(
    { c, agent, link: await agent.connect() },
    { workflow: parent.slug },
    call(quick.slug),
    late,
  )
  assert.deepEqual([await runsOf(quick), await runsOf(slow)], [0, 1])
  const [entry] = await c.db<{ state: string }[]>`select state from journal where run_id = ${run} and n = 1`
  assert.equal(entry!.state, 'failed')
})

test('no schedule is made of a workflow that was deleted meanwhile', async (t) => {
  const workflow = await aWorkflow(c)
  whileJudged(t, c, () => remove(workflow))
  const ask = { org: c.org, workflow: workflow.slug, rate: '1h' }
  await assert.rejects(c.call(ops.schedules.create, ask), refusal('NOT_FOUND'))
  assert.equal((await c.db`select from schedules where workflow_id = ${workflow.id}`).length, 0)
})

test('a delivery whose secret was replaced meanwhile starts nothing, and is recorded as unverified', async (t) => {
  const workflow = await aWorkflow(c)
  const hook = await aHook(c, session, workflow.slug)
  const ask = { org: c.org, workflow: workflow.slug, overlapMs: 0 }
  whileJudged(t, c, () => c.call(ops.webhooks.rotate, ask, { apiKey: session }))
  const { status, error } = await deliver(hook)
  assert.deepEqual([status, error.code], [401, 'UNVERIFIED'])
  assert.equal(await runsOf(workflow), 0)
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, workflow: workflow.slug })
  assert.deepEqual(
    deliveries.map(({ outcome }) => outcome),
    ['unverified'],
  )
})

test('of what a delivery means, a workflow that was disabled while another was judged starts no more', async (t) => {
  const { name, ...github } = await aConnection(c, session, { kind: 'github' })
  const off = await aReceiverOf(c, name, ['push'])
  const on = await aReceiverOf(c, name, ['push'])
  let judged = 0
  whileJudged(t, c, async () => void (++judged === 2 && (await disable(off))))
  const { receipt } = await push(github, '{}')
  assert.equal(receipt.delivery.outcome, 'triggered')
  assert.deepEqual([await runsOf(off), await runsOf(on)], [0, 1])
  const { delivery } = await c.call(ops.deliveries.get, { delivery: receipt.delivery.id })
  const outcomes = Object.fromEntries(delivery.matches.map(({ workflow, outcome }) => [workflow.slug, outcome]))
  assert.deepEqual(outcomes, { [off.slug]: 'disabled', [on.slug]: 'triggered' })
})

test('a delivery of a connection that was paused meanwhile is recorded as disabled', async (t) => {
  const { name, id, ...github } = await aConnection(c, session, { kind: 'github' })
  const workflow = await aReceiverOf(c, name, ['push'])
  whileJudged(t, c, () => c.call(ops.connections.update, { connection: id, enabled: false }, { apiKey: session }))
  const { receipt } = await push(github, '{}')
  assert.deepEqual([receipt.delivery.outcome, receipt.runs.length], ['disabled', 0])
  assert.equal(await runsOf(workflow), 0)
})

test('nothing is replayed of a source that was deleted meanwhile', async (t) => {
  const { name, id, ...github } = await aConnection(c, session, { kind: 'github' })
  const workflow = await aReceiverOf(c, name, ['push'])
  const { receipt } = await push(github, '{}')
  whileJudged(t, c, () => c.call(ops.connections.delete, { connection: id }, { apiKey: session }))
  await assert.rejects(c.call(ops.deliveries.replay, { delivery: receipt.delivery.id }), refusal('NOT_FOUND'))
  assert.equal(await runsOf(workflow), 1)
})
