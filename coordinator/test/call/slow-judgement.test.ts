// Values that are slow to judge keep others of their org waiting for minutes; what was asked for is done afterwards.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession, mintApiKey } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { refusedBy } from '../_kit/mcp.ts'
import { aSchedule } from '../_kit/schedules.ts'
import { whileJudged } from '../_kit/slow-judge.ts'
import { aParkedRun, question } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
/** What is acted on. */
let ids: { run: string; schedule: string; delivery: string; input: string }

const workflow = 'any'

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  await aWorkflow(c, { slug: workflow })
  agent = await anAgent(c)
  const asking = await aParkedRun({ c, agent, link: await agent.connect() }, { workflow }, question())
  const hook = await aHook(c, await aSession(c.db, { orgId: c.orgId }), workflow)
  const [run, schedule, { receipt }, { inputs }] = await Promise.all([
    aRun(c, { workflow }),
    aSchedule(c, { workflow, rate: '1h' }),
    deliver(hook),
    c.call(ops.inputs.list, { org: c.org, run: asking.run }),
  ])
  ids = { run: run.id, schedule: schedule.id, delivery: receipt.delivery.id, input: inputs[0]!.id }
})
after(async () => {
  agent.close()
  await c.stop()
})

type By = { apiKey: string }

const ACTS: Record<string, (by: By) => Promise<unknown>> = {
  'runs.trigger': (by) => c.call(ops.runs.trigger, { org: c.org, workflow }, by),
  'runs.trigger under a key': (by) => c.call(ops.runs.trigger, { org: c.org, workflow, idempotencyKey: 'once' }, by),
  'runs.retry': (by) => c.call(ops.runs.retry, { run: ids.run }, by),
  'runs.retry under a key': (by) => c.call(ops.runs.retry, { run: ids.run, idempotencyKey: 'retry' }, by),
  'inputs.respond': (by) => c.call(ops.inputs.respond, { input: ids.input, answer: 'yes' }, by),
  'schedules.create': (by) => c.call(ops.schedules.create, { org: c.org, workflow, rate: '2h' }, by),
  'schedules.create under a key': (by) =>
    c.call(ops.schedules.create, { org: c.org, workflow, rate: '2h', idempotencyKey: 'create' }, by),
  'schedules.update': (by) => c.call(ops.schedules.update, { schedule: ids.schedule, input: 1 }, by),
  'schedules.run': (by) => c.call(ops.schedules.run, { schedule: ids.schedule }, by),
  'schedules.run under a key': (by) => c.call(ops.schedules.run, { schedule: ids.schedule, idempotencyKey: 'run' }, by),
  'schedules.why': (by) => c.call(ops.schedules.why, { schedule: ids.schedule }, by),
  'deliveries.replay': (by) => c.call(ops.deliveries.replay, { delivery: ids.delivery }, by),
  'deliveries.replay under a key': (by) =>
    c.call(ops.deliveries.replay, { delivery: ids.delivery, idempotencyKey: 'replay' }, by),
}

/** A key that is revoked while something is judged. */
async function aKeyToBeRevoked(): Promise<By & { id: string; revoke(): Promise<unknown> }> {
  const { id, key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'leaver', role: 'owner' })
  return { id, apiKey: key, revoke: () => c.call(ops.keys.revoke, { org: c.org, key: id }) }
}

/** What a key has started or changed. */
async function doneBy(id: string): Promise<string[]> {
  const runs = await c.db<{ id: string }[]>`select id from runs where trigger_actor = ${id}`
  const entries = await c.db<{ action: string }[]>`select action from audit_log where actor_id = ${id}`
  return [...runs.map((run) => run.id), ...entries.map(({ action }) => action)]
}

for (const [name, act] of Object.entries(ACTS))
  test(`${name}: who loses the credential meanwhile is refused, and nothing is done`, async (t) => {
    const by = await aKeyToBeRevoked()
    whileJudged(t, c, () => by.revoke())
    await assert.rejects(act(by), refusal('UNAUTHENTICATED'))
    assert.deepEqual(await doneBy(by.id), [])
  })

test('over MCP too', async (t) => {
  const by = await aKeyToBeRevoked()
  whileJudged(t, c, () => by.revoke())
  assert.equal(await refusedBy({ ...c, ...by }, 'retry_run', { run: ids.run }), 'UNAUTHENTICATED')
  assert.deepEqual(await doneBy(by.id), [])
})

test('who keeps it is served', async (t) => {
  whileJudged(t, c, () => Promise.resolve())
  for (const act of Object.values(ACTS)) await act({ apiKey: c.apiKey })
})
