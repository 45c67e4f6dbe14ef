import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, returned, start } from '../_kit/agent.ts'
import { aCoordinator, anOrg, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aBlockedRun, accepted, call, type Crew, open } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const disable = async (workflow: string, at = c) =>
  (await at.call(ops.workflows.disable, { org: c.org, workflow })).workflow
const enable = async (workflow: string) => (await c.call(ops.workflows.enable, { org: c.org, workflow })).workflow

test('a disabled workflow says since when and by whom, and is enabled again', async () => {
  const { slug } = await aWorkflow(c)
  const first = await disable(slug)
  assert.match(first.disabledBy ?? '', /^key_/)
  assert.ok(first.disabledAt! >= first.createdAt)
  assert.deepEqual(await disable(first.id), first, 'said again it changes nothing')
  const { workflows } = await c.call(ops.workflows.list, { org: c.org })
  assert.equal(workflows.find((one) => one.slug === slug)?.disabledAt, first.disabledAt)
  const enabled = await enable(slug)
  assert.deepEqual([enabled.disabledAt, enabled.disabledBy], [null, null])
  assert.deepEqual(await enable(slug), enabled)
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: first.id })
  assert.deepEqual(
    auditEntries.map(({ action }) => action),
    ['workflows.enable', 'workflows.disable'],
  )
})

test('nothing starts of it: no trigger, no retry, no restart; the refusal says who and when', async () => {
  const { slug } = await aWorkflow(c)
  const blocked = await aBlockedRun(crew, { workflow: slug })
  const queued = await aRun(c, { workflow: slug })
  const key = { idempotencyKey: 'once' }
  const { run: keyed } = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, ...key })
  const { disabledAt, disabledBy, id } = await disable(slug)

  for (const workflow of [slug, id])
    await assert.rejects(aRun(c, { workflow }), (error: Error & { detail?: object }) => {
      assert.deepEqual(error.detail, { workflow: slug, disabledAt, disabledBy })
      assert.ok(error.message.includes(disabledBy!) && error.message.includes(new Date(disabledAt!).toISOString()))
      return refusal('WORKFLOW_DISABLED')(error)
    })
  await assert.rejects(aRun(c, { workflow: slug, version: 1 }), refusal('WORKFLOW_DISABLED'))
  await assert.rejects(c.call(ops.runs.retry, { run: queued.id }), refusal('WORKFLOW_DISABLED'))
  await assert.rejects(c.call(ops.runs.restart, { run: blocked.run }), refusal('WORKFLOW_DISABLED'))
  // It starts nothing: the same request was accepted before.
  const again = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, ...key })
  assert.equal(again.run.id, keyed.id)

  // What was queued goes on.
  const offer = await accepted(crew)
  assert.equal(offer.run, queued.id)
  await crew.link.report(offer, 1, start(), end(returned(1)))
  assert.equal((await runOf(c, queued.id)).status, 'completed')
  await enable(slug)
  for (const { id: run } of [await aRun(c, { workflow: slug }), keyed]) await c.call(ops.runs.cancel, { run })
  assert.equal((await c.call(ops.runs.restart, { run: blocked.run })).run.status, 'queued')
  await c.call(ops.runs.cancel, { run: blocked.run })
})

test('a call from another run is refused, and its program is told why', async () => {
  const { slug: parent } = await aWorkflow(c)
  const { slug: child } = await aWorkflow(c)
  await disable(child)
  await aRun(c, { workflow: parent })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), open(1, call(child)))
  const [entry] = await c.db<{ state: string; result: string }[]>`
    select state, result from journal where run_id = ${offer.run} and n = 1`
  assert.equal(entry?.state, 'failed')
  assert.match(entry.result, /WORKFLOW_DISABLED/)
  await crew.link.report(offer, 3, end(returned(1)))
})

test('another coordinator refuses as soon as it hears of it', async () => {
  const { slug } = await aWorkflow(c)
  const other = await c.another()
  await c.call(ops.runs.cancel, { run: (await aRun(other, { workflow: slug })).id })
  const heard = moment('bell.heard', ({ topic, id }) => topic === 'workflows' && id === c.orgId)
  await disable(slug)
  await assert.rejects(aRun(c, { workflow: slug }), refusal('WORKFLOW_DISABLED'))
  await heard
  await assert.rejects(aRun(other, { workflow: slug }), refusal('WORKFLOW_DISABLED'))
})

test("another org's workflow looks absent, and so does an unknown one", async () => {
  const { id, slug } = await aWorkflow(c)
  const stranger = await anOrg(c)
  const as = { apiKey: stranger.apiKey }
  for (const row of [ops.workflows.disable, ops.workflows.enable]) {
    for (const workflow of [id, slug])
      await assert.rejects(c.call(row, { org: stranger.slug, workflow }, as), refusal('NOT_FOUND'))
    await assert.rejects(c.call(row, { org: c.org, workflow: 'no-such' }), refusal('NOT_FOUND'))
  }
  const { workflows } = await c.call(ops.workflows.list, { org: c.org, limit: 1 })
  assert.deepEqual([workflows[0]?.slug, workflows[0]?.disabledAt], [slug, null])
})
