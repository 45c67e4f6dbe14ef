// A request whose answer was lost is sent again under its key, and its work is done once. The keys of triggers are in
// test/runs, those of bulk jobs in test/bulk.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { claimOf, once, type TakeKey } from '../../idempotency/once.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { type Keyed, type KeyedAnswer, loseAnswer, sendKeyed } from '../_kit/keyed.ts'
import { aSchedule } from '../_kit/schedules.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let another: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
  another = await c.another()
})
after(() => c.stop())

/** Something that is asked for of a workflow of its own. */
interface Asked extends Keyed {
  workflow: TestWorkflow
  /** What its key counts for. */
  scope: string
  /** What the audit log has it as, and about what. */
  action: string
  /** Undefined: about what it makes. */
  target?: string
  /** Requests of the same kind that are not the same. */
  others: Keyed[]
}

const ASKED: Record<string, () => Promise<Asked>> = {
  'runs.retry': async () => {
    const workflow = await aWorkflow(c)
    const [run, other] = [await aRun(c, { workflow: workflow.slug }), await aRun(c, { workflow: workflow.slug })]
    const path = `/v1/runs/${run.id}/retry`
    const others = [
      { path, body: { version: 1 } },
      { path: `/v1/runs/${other.id}/retry`, body: {} },
    ]
    const { id: scope } = workflow
    return { workflow, scope, path, body: {}, others, action: 'runs.retry', target: run.id }
  },
  'schedules.run': async () => {
    const workflow = await aWorkflow(c)
    const ask = { workflow: workflow.slug, rate: '2h', input: { n: 1 } }
    const [schedule, other] = [await aSchedule(c, ask), await aSchedule(c, ask)]
    const path = `/v1/schedules/${schedule.id}/run`
    const others = [
      { path, body: {} },
      { path, body: { input: { a: 1 } } },
      { path, body: { input: null } },
      { path: `/v1/schedules/${other.id}/run`, body: { input: { a: 1, b: 2 } } },
    ]
    const body = { input: { a: 1, b: 2 } }
    const { id: scope } = workflow
    return { workflow, scope, path, body, others, action: 'schedules.run', target: schedule.id }
  },
  'deliveries.replay': async () => {
    const workflow = await aWorkflow(c)
    const hook = await aHook(c, session, workflow.slug)
    const [{ receipt }, other] = [await deliver(hook, { body: '{"n":1}' }), await deliver(hook, { body: '{"n":2}' })]
    const { id } = receipt.delivery
    const others = [{ path: `/v1/deliveries/${other.receipt.delivery.id}/replay`, body: {} }]
    const path = `/v1/deliveries/${id}/replay`
    return { workflow, scope: hook.id, path, body: {}, others, action: 'deliveries.replay', target: id }
  },
}

const CREATING = {
  'schedules.create': async (): Promise<Asked> => {
    const workflow = await aWorkflow(c)
    const path = `/v1/orgs/${c.org}/schedules`
    const body = { workflow: workflow.slug, name: 'report', cron: '0 9 * * 1-5', input: { a: 1, b: 2 } }
    const others = [
      { path, body: { ...body, name: 'other' } },
      { path, body: { ...body, cron: '0 9 * * *' } },
      { path, body: { ...body, enabled: false } },
    ]
    return { workflow, scope: workflow.id, path, body, others, action: 'schedules.create' }
  },
}

const idIn = ({ run, delivery, schedule }: KeyedAnswer) => (run ?? delivery ?? schedule)?.id

/** How often it was done. */
async function countOf({ action, target, workflow }: Asked): Promise<number> {
  const isAbout = (after: unknown) =>
    target !== undefined || (after as { workflow?: string }).workflow === workflow.slug
  const entries = await entriesOf(c, target === undefined ? { action: [action] } : { target })
  return entries.filter((entry) => entry.action === action && isAbout(entry.after)).length
}

const age = ({ scope }: Asked) => c.db`
  update idempotency_keys set expires_at = now() - interval '1 second' where workflow_id = ${scope}`

for (const [name, begin] of Object.entries({ ...ASKED, ...CREATING })) {
  test(`${name}: the same request under its key is answered with 200 and the first one`, async () => {
    const asked = await begin()
    const first = await sendKeyed(c, { ...asked, body: { ...asked.body, idempotencyKey: 'k' } })
    assert.equal(first.status, 201)
    assert.deepEqual(await sendKeyed(another, { ...asked, key: 'k' }), { ...first, status: 200 })
    assert.equal(await countOf(asked), 1)
  })

  test(`${name}: an answer that was lost is had by asking again`, async () => {
    const asked = { ...(await begin()), key: 'k' }
    await loseAnswer(c, asked)
    const again = await sendKeyed(c, asked)
    assert.equal(again.status, 200)
    assert.equal(idIn(await sendKeyed(c, asked)), idIn(again))
    assert.equal(await countOf(asked), 1)
  })

  test(`${name}: of twenty pairs at the same moment each does it once`, async () => {
    const asked = await begin()
    const keys = Array.from({ length: 20 }, (_, i) => `pair ${i}`)
    const pairs = await Promise.all(
      keys.map((key) => Promise.all([sendKeyed(c, { ...asked, key }), sendKeyed(another, { ...asked, key })])),
    )
    for (const [one, two] of pairs) {
      assert.deepEqual(new Set([one.status, two.status]), new Set([200, 201]))
      assert.equal(idIn(one), idIn(two))
    }
    assert.equal(new Set(pairs.map(([one]) => idIn(one))).size, 20)
    assert.equal(await countOf(asked), 20)
  })

  test(`${name}: another request under the key is refused, and names what the first has made`, async () => {
    const asked = { ...(await begin()), key: 'k' }
    const id = idIn(await sendKeyed(c, asked))!
    const isOfWorkflow = asked.scope === asked.workflow.id
    const trigger = { path: `/v1/orgs/${c.org}/workflows/${asked.workflow.slug}/runs`, body: {} }
    for (const other of [...asked.others, ...(isOfWorkflow ? [trigger] : [])]) {
      const { status, error } = await sendKeyed(c, { ...other, key: 'k' })
      assert.deepEqual([status, error?.code], [409, 'IDEMPOTENCY_CONFLICT'], JSON.stringify(other))
      assert.equal(error?.detail['path'], 'idempotencyKey')
      assert.ok(Object.values(error.detail).includes(id) && error.message.includes(id))
    }
    assert.equal(await countOf(asked), 1)
  })

  test(`${name}: a key of the body and another one of the header are refused`, async () => {
    const asked = await begin()
    const body = { ...asked.body, idempotencyKey: 'k' }
    const { status, error } = await sendKeyed(c, { ...asked, body, key: 'j' })
    assert.deepEqual([status, error?.detail['path']], [400, 'idempotencyKey'])
    assert.match(error!.message, /header `Idempotency-Key`/)
    assert.equal((await sendKeyed(c, { ...asked, body, key: 'k' })).status, 201)
    assert.equal(await countOf(asked), 1)
  })

  test(`${name}: a key is free again after a day, and without one each request counts`, async () => {
    const asked = { ...(await begin()), key: 'k' }
    const first = await sendKeyed(c, asked)
    assert.equal((await sendKeyed(c, asked)).status, 200)
    await age(asked)
    const second = await sendKeyed(c, asked)
    assert.equal(second.status, 201)
    assert.notEqual(idIn(second), idIn(first))
    const bare = { ...asked, key: undefined }
    for (const { status } of [await sendKeyed(c, bare), await sendKeyed(c, bare)]) assert.equal(status, 201)
    assert.equal(await countOf(asked), 4)
  })
}

for (const [name, begin] of Object.entries(ASKED))
  test(`${name}: what is refused leaves its key free, what was accepted stays accepted`, async () => {
    const asked = { ...(await begin()), key: 'k' }
    const { slug } = asked.workflow
    await c.call(ops.workflows.disable, { org: c.org, workflow: slug })
    assert.equal((await sendKeyed(c, asked)).error?.code, 'WORKFLOW_DISABLED')
    await c.call(ops.workflows.enable, { org: c.org, workflow: slug })
    const first = await sendKeyed(c, asked)
    assert.equal(first.status, 201)
    await c.call(ops.workflows.disable, { org: c.org, workflow: slug })
    assert.deepEqual(await sendKeyed(c, asked), { ...first, status: 200 })
  })

test('a request that is refused when its twin has just been accepted has the answer of that one', async () => {
  const { id: scope } = await aWorkflow(c)
  const claim = await claimOf({ orgId: c.orgId, scope, key: 'k', request: {} })
  const [madeId, first] = [newId('run'), (id: RunId) => Promise.resolve(id)]
  const twin = { first, make: async (take?: TakeKey) => (await c.deps.db.begin((tx) => take!(tx, madeId)), madeId) }
  const refused = async () => {
    assert.equal(await once(c.deps, claim, twin), madeId)
    throw new Fault('RUN_DELETED')
  }
  assert.equal(await once(c.deps, claim, { first, make: refused }), madeId)
  const other = { ...claim, key: 'j' }
  const make = () => Promise.reject(new Fault('RUN_DELETED'))
  await assert.rejects(once(c.deps, other, { first, make }), { code: 'RUN_DELETED' })
})

test('the first run is answered as it is by now, also when the run that it retries was deleted', async () => {
  const { slug } = await aWorkflow(c)
  const { id } = await aRun(c, { workflow: slug })
  await c.call(ops.runs.cancel, { run: id })
  const ask = { run: id, idempotencyKey: newId('req') }
  const { run } = await c.call(ops.runs.retry, ask)
  await c.call(ops.runs.cancel, { run: run.id })
  await c.call(ops.runs.delete, { run: id })
  const again = await c.call(ops.runs.retry, ask)
  assert.deepEqual([again.run.id, again.run.status], [run.id, 'cancelled'])
})

test('a replay under a key starts its runs once, and without one starts them again', async () => {
  const { slug } = await aWorkflow(c)
  const { receipt } = await deliver(await aHook(c, session, slug), { body: '{"n":1}' })
  const ask = { delivery: receipt.delivery.id, idempotencyKey: newId('req') }
  for (let n = 0; n < 3; n++) await c.call(ops.deliveries.replay, ask)
  const runs = async () => (await c.call(ops.runs.list, { org: c.org, workflow: slug })).runs.length
  assert.equal(await runs(), 2)
  await c.call(ops.deliveries.replay, { delivery: receipt.delivery.id })
  assert.equal(await runs(), 3)
})

test('a replay that starts no run is done once as well', async () => {
  const { slug } = await aWorkflow(c, { inputSchema: { type: 'object', required: ['n'] } })
  await deliver(await aHook(c, session, slug))
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, workflow: slug })
  const ask = { delivery: deliveries[0]!.id, idempotencyKey: newId('req') }
  const { delivery } = await c.call(ops.deliveries.replay, ask)
  assert.deepEqual([delivery.outcome, delivery.replayOf], ['invalid_input', ask.delivery])
  assert.deepEqual((await c.call(ops.deliveries.replay, ask)).delivery, delivery)
})

test('a key does not let anybody replay what does not verify', async () => {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  await deliver(hook, { body: '{}', signature: null })
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, workflow: slug })
  const ask = { delivery: deliveries[0]!.id, unverified: true, idempotencyKey: 'k' }
  const { delivery } = await c.call(ops.deliveries.replay, ask, { apiKey: session })
  assert.equal(delivery.outcome, 'triggered')
  await assert.rejects(c.call(ops.deliveries.replay, ask), refusal('FORBIDDEN'))
  const other = { ...ask, unverified: false }
  await assert.rejects(c.call(ops.deliveries.replay, other), refusal('IDEMPOTENCY_CONFLICT'))
})

test('a schedule that is sent again is answered as it is by now, and what was deleted stays so', async () => {
  const { id, slug } = await aWorkflow(c)
  const ask = {
    org: c.org,
    workflow: slug,
    at: Date.now() + 3_600_000,
    environment: null,
    idempotencyKey: newId('req'),
  }
  const { schedule } = await c.call(ops.schedules.create, ask)
  await c.call(ops.schedules.update, { schedule: schedule.id, enabled: false })
  const { environment: _, ...less } = ask
  const again = (await c.call(ops.schedules.create, { ...less, workflow: id })).schedule
  assert.deepEqual([again.id, again.enabled], [schedule.id, false])
  await c.call(ops.schedules.delete, { schedule: schedule.id })
  await assert.rejects(c.call(ops.schedules.create, ask), refusal('NOT_FOUND'))
})
