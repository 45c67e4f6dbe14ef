import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { insertQueued, type NewRun } from '../../engine/store/new-runs.ts'
import { anOrg, aCoordinator, aRun, logOf, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

const GREETING = {
  type: 'object',
  properties: { name: { type: 'string' }, times: { type: 'integer' } },
  required: ['name'],
  additionalProperties: false,
}
let c: TestCoordinator
let anything: TestWorkflow

before(async () => {
  c = await aCoordinator()
  for (const name of ['staging', 'production']) await anEnvironment(c, name)
  anything = await aWorkflow(c, { slug: 'anything' })
  await aWorkflow(c, { slug: 'greet', inputSchema: GREETING })
})
after(() => c.stop())

const path = (workflow: string, org = c.org) => `/v1/orgs/${org}/workflows/${workflow}/runs`

async function post(body: string, workflow = 'anything') {
  const response = await rawCall(c, 'POST', path(workflow), body)
  return { status: response.status, body: (await response.json()) as Record<string, never> }
}

test('a trigger answers 201 with the run as it stands in the database', async () => {
  const response = await rawCall(
    c,
    'POST',
    path('anything'),
    '{"input":{"a":1},"environment":"staging","tags":["x","y"],"priority":7}',
  )
  assert.equal(response.status, 201)
  const { run } = (await response.json()) as { run: Record<string, unknown> }
  assert.equal(run.status, 'queued')
  assert.equal(run.org, c.org)
  assert.deepEqual(run.workflow, { id: anything.id, slug: 'anything', version: 1 })
  assert.deepEqual([run.environment, run.tags, run.priority, run.attempt], ['staging', ['x', 'y'], 7, 1])
  assert.deepEqual(
    [run.runner, run.error, run.claimedAt, run.startedAt, run.finishedAt],
    [null, null, null, null, null],
  )
  assert.equal((run.trigger as { kind: string }).kind, 'api')
  assert.deepEqual(await runOf(c, run.id as string), run)
  assert.deepEqual(await c.call(ops.runs.input, { run: run.id as string }), { input: { a: 1 } })
  const [event] = await logOf(c, run.id as string)
  assert.deepEqual([event?.type, event?.channel, event?.data], ['run.queued', 'lifecycle', { trigger: 'api' }])
})

test('a run shows the budget of its descriptor, of which nothing is spent as nothing is metered', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { budget: { usd: 0.5, tokens: 100 } } })
  const run = await aRun(c, { workflow: slug })
  const spent = { spentTokens: 0, spentMicros: 0, reservedMicros: 0 }
  assert.deepEqual(run.budget, { tokens: 100, costMicros: 500_000, ...spent, onBreach: 'notify' })
  assert.deepEqual((await runOf(c, run.id)).budget, run.budget)
  assert.equal((await aRun(c, { workflow: 'anything' })).budget, null)
})

test('slug and id of a workflow both serve', async () => {
  assert.equal((await aRun(c, { workflow: anything.id })).workflow.slug, 'anything')
})

test('without input the program gets null, and a trigger needs no body', async () => {
  const response = await rawCall(c, 'POST', path('anything'))
  assert.equal(response.status, 201)
  const { run } = (await response.json()) as { run: { id: string } }
  assert.deepEqual(await c.call(ops.runs.input, { run: run.id }), { input: null })
})

test('an unknown workflow and an unknown version are 404', async () => {
  await assert.rejects(aRun(c, { workflow: 'nowhere' }), refusal('NOT_FOUND'))
  await assert.rejects(aRun(c, { workflow: newId('wf') }), refusal('NOT_FOUND'))
  await assert.rejects(aRun(c, { workflow: 'anything', version: 2 }), refusal('NOT_FOUND'))
  for (const version of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
    await assert.rejects(aRun(c, { workflow: 'anything', version }), refusal('NOT_FOUND'), String(version))
  }
})

test("another org's workflow looks absent, and so does the org itself", async () => {
  const strangers = await anOrg(c)
  const base = { url: c.url, apiKey: strangers.apiKey }
  assert.equal((await rawCall(base, 'POST', path('anything'))).status, 404)
  assert.equal((await rawCall(base, 'POST', path(anything.id, strangers.slug))).status, 404)
})

test('an input that does not fit is refused with the path of what is wrong', async () => {
  await assert.rejects(aRun(c, { workflow: 'greet', input: { name: 7 } }), refusal('VALIDATION_FAILED', 'input.name'))
  await assert.rejects(
    aRun(c, { workflow: 'greet', input: { name: 'Ada', times: 1.5 } }),
    refusal('VALIDATION_FAILED', 'input.times'),
  )
  await assert.rejects(aRun(c, { workflow: 'greet' }), refusal('VALIDATION_FAILED', 'input'))
  const response = await rawCall(c, 'POST', path('greet'), '{"input":{"name":"Ada","extra":1}}')
  assert.equal(response.status, 400)
})

test('what is no JSON, no object, or names an unknown field is 400', async () => {
  for (const body of ['{', '[]', '"x"', '{"input":1,"inptu":2}', '{"priority":"high"}', '{"priority":101}']) {
    assert.equal((await post(body)).status, 400, body)
  }
  const { body } = await post('{"inptu":2}')
  assert.match(JSON.stringify(body), /inptu/)
})

test('environment and tags are held to their form', async () => {
  const paths: [string, string][] = [
    ['{"environment":"Not A Slug"}', 'environment'],
    ['{"tags":"x"}', 'tags'],
    ['{"tags":[""]}', 'tags[0]'],
    [`{"tags":["${'x'.repeat(65)}"]}`, 'tags[0]'],
    [JSON.stringify({ tags: Array.from({ length: 21 }, String) }), 'tags'],
  ]
  for (const [body, expected] of paths) {
    const answer = await post(body)
    assert.equal(answer.status, 400, body)
    assert.equal((answer.body as { error?: { detail?: { path?: string } } }).error?.detail?.path, expected)
  }
})

test('1 MiB of input is taken, a byte more is 413', async () => {
  const fits = 'x'.repeat(1024 * 1024 - 2)
  assert.equal((await post(JSON.stringify({ input: fits }))).status, 201)
  assert.equal((await post(JSON.stringify({ input: `${fits}x` }))).status, 413)
  assert.equal((await post(JSON.stringify({ input: 'x'.repeat(2 * 1024 * 1024) }))).status, 413)
})

test('a version other than the current one runs when it is named', async () => {
  const workflow = await aWorkflow(c)
  assert.equal(await aVersion(c, workflow), 2)
  assert.equal((await aRun(c, { workflow: workflow.slug })).workflow.version, 2)
  assert.equal((await aRun(c, { workflow: workflow.slug, version: 1 })).workflow.version, 1)
})

test('a workflow whose pool does not exist is refused with what to do, and runs once the pool is there', async () => {
  const workflow = await aWorkflow(c, { descriptor: { pool: 'gpu' } })
  const failure: Error = await aRun(c, { workflow: workflow.slug }).then(
    () => assert.fail('it was queued'),
    (error: Error) => error,
  )
  assert.match(failure.message, /pool `gpu`.*[Cc]reate/)
  await c.call(ops.pools.create, { org: c.org, name: 'gpu' })
  assert.equal((await aRun(c, { workflow: workflow.slug })).pool.name, 'gpu')
})

test('a run that names no environment, or null, gets the base of the org', async () => {
  const { slug: workflow, id } = await aWorkflow(c)
  // As an earlier release has stored it.
  await c.db`
    update workflow_versions
    set descriptor = (descriptor::jsonb || '{"environment": "production"}')::json
    where workflow_id = ${id}`
  assert.equal((await aRun(c, { workflow })).environment, null)
  assert.equal((await aRun(c, { workflow, environment: null })).environment, null)
  assert.equal((await aRun(c, { workflow, environment: 'staging' })).environment, 'staging')
})

test('an input comes back as it was given, whatever characters it has', async () => {
  const inputs = [
    '{"a":"\\u0000","b":"\\ud800","c":"\\udfff x","d":"\\ud83d\\ude00","e":"\\u2028"}',
    '{"__proto__":{"polluted":true},"constructor":{"prototype":1}}',
    '{"2":1,"1":2,"z":[[],{},null,true,-0.5e-7]}',
    '"\\u0000"',
  ]
  for (const input of inputs) {
    const { status, body } = await post(`{"input":${input}}`)
    assert.equal(status, 201, input)
    const { id } = (body as unknown as { run: { id: string } }).run
    const answer = await (await rawCall(c, 'GET', `/v1/runs/${id}/input`)).text()
    assert.equal(answer, `{"input":${JSON.stringify(JSON.parse(input))}}`)
  }
  assert.equal(({} as { polluted?: true }).polluted, undefined)
})

test('`__proto__` beside the input is an unknown field', async () => {
  assert.equal((await post('{"__proto__":{"input":1}}')).status, 400)
})

test('tags that cannot be stored are refused, and runs that were triggered beside them are not', async () => {
  for (const tag of ['\\u0000', 'a\\u0000b', '\\ud800', '\\udc00x']) {
    const neighbours = [post('{"input":1}'), post(`{"tags":["${tag}"]}`), post('{"tags":["fine"]}')]
    const statuses = (await Promise.all(neighbours)).map(({ status }) => status)
    assert.deepEqual(statuses, [201, 400, 201], tag)
  }
})

test('a hundred triggers at once share statements, and each gets a run of its own', async () => {
  const before = await transactions()
  const runs = await Promise.all(
    Array.from({ length: 100 }, (_, i) => aRun(c, { workflow: 'anything', input: i, tags: [`n${i}`] })),
  )
  assert.equal(new Set(runs.map((run) => run.id)).size, 100)
  for (const [i, run] of runs.entries()) assert.deepEqual(run.tags, [`n${i}`])
  const spent = (await transactions()) - before
  assert.ok(spent < 60, `${spent} transactions for 100 triggers`)
  const ids = runs.map((run) => run.id)
  const [counts] = await c.db<[{ events: number; queued: number }]>`
    select (select count(*)::int from run_events where run_id = any(${ids})) as events,
           (select count(*)::int from run_queue where run_id = any(${ids})) as queued`
  assert.deepEqual({ ...counts }, { events: 100, queued: 100 })
})

/** How many transactions have created runs: each leaves its number on the rows. */
async function transactions(): Promise<number> {
  const [row] = await c.db<
    [{ n: number }]
  >`select count(distinct xmin::text)::int as n from runs where org_id = ${c.orgId}`
  return row.n
}

function aNewRun(): NewRun {
  const [versionId, orgId, poolId] = [newId('ver'), c.orgId, c.poolId]
  const trigger = { triggerKind: 'api' as const, triggerId: null, triggerActor: null, tick: null }
  return {
    id: newId('run'),
    orgId,
    workflowId: anything.id,
    versionId,
    poolId,
    ...trigger,
    environment: null,
    tags: ['a', '{"b'],
    priority: 0,
    retryOf: null,
    parentRunId: null,
    parentEntry: null,
    rootRunId: null,
    depth: 0,
    delayMs: 0,
    queueTimeoutMs: null,
    wallTimeoutMs: null,
    concurrencyGroup: null,
    throttle: null,
    debounce: null,
    needs: '',
    input: '1',
  }
}

test('an insert that is repeated because its commit was not heard of creates nothing twice', async () => {
  const runs = [aNewRun(), aNewRun()]
  assert.equal((await insertQueued(c.db, runs)).size, 2)
  const third = aNewRun()
  assert.deepEqual([...(await insertQueued(c.db, [...runs, third])).keys()], [third.id])
  const ids = [...runs, third].map((run) => run.id)
  const rows = await c.db<{ tags: string[]; cursor: number; events: number; queued: number }[]>`
    select r.tags, r.cursor,
           (select count(*)::int from run_events e where e.run_id = r.id) as events,
           (select count(*)::int from run_queue q where q.run_id = r.id) as queued
    from runs r
    where r.id = any(${ids})`
  assert.equal(rows.length, 3)
  for (const row of rows) assert.deepEqual({ ...row }, { tags: ['a', '{"b'], cursor: 1, events: 1, queued: 1 })
})

test('an insert that another has overtaken still answers when its runs were created', async () => {
  const run = { ...aNewRun(), versionId: (await c.deps.targets.resolve(c.orgId, anything.id))!.version.id }
  const [first, second] = await Promise.all([
    c.deps.triggers.add(run),
    c.deps.triggers.add(run).catch((error: unknown) => error),
  ])
  assert.ok(first instanceof Date)
  assert.ok(second instanceof Date, String(second))
  assert.equal((await c.deps.triggers.add(run)).getTime(), first.getTime())
})
