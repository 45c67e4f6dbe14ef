import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { cleanIdempotencyKeys } from '../../idempotency/once.ts'
import { anAgent, end, returned, takeNext } from '../_kit/agent.ts'
import { anOrg, aCoordinatorOfItsOwn, logOf, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let workflow: TestWorkflow

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** A workflow of its own, so that no test counts the runs of another. */
async function fresh(): Promise<void> {
  workflow = await aWorkflow(c)
}

interface Answer {
  status: number
  run: Run
  error: { code: string; message: string; detail: { run?: string; path?: string } }
}

async function post(body: object, header?: string, base: Pick<TestCoordinator, 'url' | 'apiKey'> = c): Promise<Answer> {
  const response = await fetch(`${base.url}/v1/orgs/${c.org}/workflows/${workflow.slug}/runs`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${base.apiKey}`,
      'content-type': 'application/json',
      ...(header !== undefined && { 'idempotency-key': header }),
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) }
}

const age = (key: string) =>
  c.db`update idempotency_keys set expires_at = now() - interval '1 second' where workflow_id = ${workflow.id} and key = ${key}`

async function runsOf(): Promise<string[]> {
  const rows = await c.db<{ id: string }[]>`select id from runs where workflow_id = ${workflow.id} order by id`
  return rows.map((row) => row.id)
}

test('the same key and request answer the first run with 200, as it stands by then', async () => {
  await fresh()
  const first = await post({ input: { a: 1, b: [2] }, idempotencyKey: 'k' })
  assert.equal(first.status, 201)
  const again = await post({ input: { b: [2], a: 1 }, tags: [], priority: 0, delayMs: 0 }, 'k')
  assert.deepEqual([again.status, again.run], [200, first.run])
  const agent = await anAgent(c)
  const link = await agent.connect()
  await link.report(await takeNext(agent, link), 2, end(returned(1)))
  assert.deepEqual((await post({ input: { a: 1, b: [2] } }, 'k')).run.status, 'completed')
  assert.deepEqual(await runsOf(), [first.run.id])
})

test('to name no environment and to ask for the base is one request', async () => {
  await fresh()
  const { run } = await post({ input: 1 }, 'k')
  assert.equal((await post({ input: 1, environment: null }, 'k')).run?.id, run.id)
})

test('another request under the same key is refused and names the first run', async () => {
  await fresh()
  const { run } = await post({ input: 1 }, 'k')
  const others = [{ input: 2 }, {}, { input: 1, tags: ['x'] }, { input: 1, priority: 1 }, { input: 1, version: 1 }]
  for (const other of [...others, { input: 1, environment: 'staging' }, { input: 1, delayMs: 5 }]) {
    const { status, error } = await post(other, 'k')
    assert.deepEqual(
      [status, error.code, error.detail.run],
      [409, 'IDEMPOTENCY_CONFLICT', run.id],
      JSON.stringify(other),
    )
    assert.ok(error.message.includes(run.id))
  }
  assert.equal((await runsOf()).length, 1)
})

test('a key counts for its workflow and org only', async () => {
  await fresh()
  const first = await post({}, 'k')
  const other = await aWorkflow(c)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: other.slug, idempotencyKey: 'k' })
  assert.notEqual(run.id, first.run.id)
  const strangers = await anOrg(c)
  await aWorkflow({ deps: c.deps, orgId: strangers.id }, { slug: workflow.slug })
  const { apiKey } = strangers
  const theirs = await c.call(
    ops.runs.trigger,
    { org: strangers.slug, workflow: workflow.slug, idempotencyKey: 'k' },
    { apiKey },
  )
  assert.notEqual(theirs.run.id, first.run.id)
})

test('fifty equal requests at once on two coordinators make one run', async () => {
  await fresh()
  const other = await c.another()
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => post({ input: 7 }, 'k', i % 2 ? c : other)))
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  assert.equal(answers.filter(({ status }) => status === 200).length, 49)
  const [id, ...more] = await runsOf()
  assert.deepEqual(more, [])
  assert.deepEqual([...new Set(answers.map(({ run }) => run.id))], [id])
  assert.equal((await logOf(c, id!)).length, 1)
})

test('fifty different requests at once under one key make one run and refuse the rest', async () => {
  await fresh()
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => post({ input: i }, 'k')))
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  assert.equal(answers.filter(({ error }) => error?.code === 'IDEMPOTENCY_CONFLICT').length, 49)
  assert.equal((await runsOf()).length, 1)
})

test('a request that is refused leaves its key free', async () => {
  workflow = await aWorkflow(c, { inputSchema: { type: 'number' } })
  assert.equal((await post({ input: 'x' }, 'k')).status, 400)
  assert.equal((await post({ input: 1 }, 'k')).status, 201)
})

test('a key whose run cannot be written stays free', async () => {
  await fresh()
  await c.db`alter table run_events add constraint refused check (type <> 'run.queued') not valid`
  assert.equal((await post({}, 'k')).status, 500)
  await c.db`alter table run_events drop constraint refused`
  assert.equal((await post({}, 'k')).status, 201)
  assert.equal((await runsOf()).length, 1)
})

test('what was accepted once stays accepted when the workflow has changed', async () => {
  workflow = await aWorkflow(c, { inputSchema: { type: 'number' } })
  const first = await post({ input: 1 }, 'k')
  await aVersion(c, workflow, { inputSchema: { type: 'string' }, descriptor: { pool: 'nowhere' } })
  const again = await post({ input: 1 }, 'k')
  assert.deepEqual([again.status, again.run.id, again.run.workflow.version], [200, first.run.id, 1])
})

test('a key is free again when it has expired, and cleaned away', async () => {
  await fresh()
  const first = await post({ input: 1 }, 'k')
  await age('k')
  const second = await post({ input: 2 }, 'k')
  assert.equal(second.status, 201)
  assert.notEqual(second.run.id, first.run.id)
  assert.equal((await post({ input: 2 }, 'k')).run.id, second.run.id)
  await post({ input: 1 }, 'old')
  await age('old')
  await cleanIdempotencyKeys(c.deps)
  const left = await c.db<{ key: string }[]>`select key from idempotency_keys where workflow_id = ${workflow.id}`
  assert.deepEqual(
    left.map(({ key }) => key),
    ['k'],
  )
})

test('an expired key that many take over at once makes one run', async () => {
  await fresh()
  await post({ input: 1 }, 'k')
  await age('k')
  const answers = await Promise.all(Array.from({ length: 20 }, () => post({ input: 2 }, 'k')))
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  assert.equal((await runsOf()).length, 2)
})

test('header and body may both have the key when it is the same', async () => {
  await fresh()
  assert.equal((await post({ idempotencyKey: 'k' }, 'k')).status, 201)
  const { status, error } = await post({ idempotencyKey: 'k' }, 'j')
  assert.deepEqual([status, error.detail.path], [400, 'idempotencyKey'])
  assert.equal((await post({}, '')).status, 400)
  assert.equal((await post({}, 'x'.repeat(256))).status, 400)
  assert.equal((await post({}, 'x'.repeat(255))).status, 201)
  assert.equal((await post({ idempotencyKey: 'a\0b' })).status, 400)
  const call = c.call(ops.runs.trigger, { org: c.org, workflow: 'nowhere', idempotencyKey: 'k' })
  await assert.rejects(call, refusal('NOT_FOUND'))
})

test('a run with a key is held to the limit of its workflow and to its delay', async () => {
  workflow = await aWorkflow(c, { descriptor: { concurrency: 1 } })
  for (const key of ['a', 'b']) assert.equal((await post({}, key)).status, 201)
  assert.equal((await post({ delayMs: 60_000 }, 'c')).status, 201)
  const ids = await runsOf()
  const rows = await c.db<{ runId: string }[]>`select run_id from run_queue where run_id = any(${ids})`
  assert.deepEqual(
    rows.map(({ runId }) => runId),
    [ids[0]],
  )
})
