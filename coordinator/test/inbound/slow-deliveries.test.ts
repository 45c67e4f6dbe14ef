// Orgs whose deliveries keep commits busy, and those that have deliveries beside them.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { onMoment } from '@windlass/shared/probe.ts'
import { countBlocked } from '../_kit/blocked.ts'
import { aConnection, aReceiverOf, push } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook } from '../_kit/inbound.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
})
after(() => c.stop())

/** The webhook of a workflow of an org of its own. */
async function aHookWith(descriptor: Record<string, unknown>): Promise<Hook> {
  const org = asOwner(c, await anOrg(c))
  const { slug } = await aWorkflow(org, { descriptor })
  return aHook(org, await aSession(c.db, { orgId: org.orgId }), slug)
}

let sent = 0
const outcomeAt = async (hook: Hook) => (await deliver(hook, { body: `{"n":${++sent}}` })).receipt.delivery.outcome

test('orgs whose deliveries were refused leave a lane to those of others', async () => {
  const slow = [await aHookWith({ debounce: { wait: '1h' } }), await aHookWith({ debounce: { wait: '1h' } })]
  const other = await aHookWith({ concurrency: { limit: 10 } })
  for (const hook of slow) assert.equal(await outcomeAt(hook), 'triggered')
  await c.db`alter table deliveries add constraint refuses check (false) not valid`
  for (const hook of slow) assert.equal((await deliver(hook)).status, 500)
  await c.db`alter table deliveries drop constraint refuses`
  assert.equal(await outcomeAt(other), 'triggered')
  let answers: Promise<string>[] = []
  await c.db.begin(async (tx) => {
    await tx`select from debounces for update`
    answers = slow.map(outcomeAt)
    await untilPolled('one of them waits', async () => (await countBlocked(c.db)) > 0)
    assert.equal(await outcomeAt(other), 'triggered')
  })
  assert.deepEqual(await Promise.all(answers), ['triggered', 'triggered'])
})

test('deliveries that start many runs are few in a commit', async (t) => {
  const session = await aSession(c.db, { orgId: c.orgId })
  const github = await aConnection(c, session, { kind: 'github' })
  for (let n = 0; n < 50; n++) await aReceiverOf(c, github.name, ['push'])
  const sizes: number[] = []
  const stop = onMoment(({ name, facts }) => {
    if (name === 'group.committed' && facts.name === 'delivery') sizes.push(facts.items)
  })
  const add = t.mock.method(c.deps.deliveries, 'add')
  let pushed: ReturnType<typeof push>[] = []
  await c.db.begin(async (tx) => {
    await tx`lock table deliveries in exclusive mode`
    pushed = Array.from({ length: 8 }, (_, n) => push(github, `{"n":${n}}`))
    await until('all are on their way', () => add.mock.callCount() === 8)
  })
  for (const { receipt } of await Promise.all(pushed)) assert.equal(receipt.runs.length, 50)
  stop()
  assert.ok(Math.max(...sizes) <= 3, `commits of ${sizes.join()}`)
})
