import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinatorOfItsOwn, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const KIB = 1024

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another({ MAX_BATCH: 64 * KIB })
})
after(() => c.stop())

type Item = { input?: unknown; [field: string]: unknown }

async function batch(workflow: string, items: Item[], at: TestCoordinator = c) {
  return (await at.call(ops.runs.batch, { org: c.org, workflow, items })).results
}

/** What became of each: the id of its run, or the code of its refusal. */
const said = (results: Awaited<ReturnType<typeof batch>>) =>
  results.map((result) => ('run' in result ? result.run.id : result.error.code))

async function inputsOf(ids: readonly string[]): Promise<unknown[]> {
  const rows = await c.db<{ id: string; input: string }[]>`select id, input from runs where id = any(${[...ids]})`
  const inputs = new Map(rows.map(({ id, input }) => [id, JSON.parse(input) as unknown]))
  return ids.map((id) => inputs.get(id))
}

test('a thousand runs are started by one request, in the order of the items', async () => {
  const { slug } = await aWorkflow(c)
  const items = Array.from({ length: 1000 }, (_, input) => ({ input, tags: ['many'], priority: input % 3 }))
  const results = await batch(slug, items)
  const runs = results.map((result) => ('run' in result ? result.run : assert.fail(result.error.message)))
  assert.deepEqual(
    await inputsOf(runs.map(({ id }) => id)),
    items.map(({ input }) => input),
  )
  assert.deepEqual(
    runs.map(({ priority, status }) => [priority, status]),
    items.map(({ priority }) => [priority, 'queued']),
  )
  const ids = runs.map(({ id }) => id)
  assert.deepEqual(ids, ids.toSorted(), 'older items have older ids')
  const [{ count }] = await c.db<[{ count: number }]>`
    select count(*)::int as count from run_queue where run_id = any(${ids})`
  assert.equal(count, 1000)
})

test('an item that is refused leaves the others alone', async () => {
  const { slug } = await aWorkflow(c, { inputSchema: { type: 'object', properties: { n: { type: 'number' } } } })
  const items: Item[] = [
    { input: { n: 1 } },
    { input: { n: 'x' } },
    { input: { n: 2 }, environment: 'nowhere' },
    { input: { n: 3 }, version: 9 },
    { input: { n: 4, text: 'x'.repeat(1024 * KIB) } },
    { input: { n: 6 } },
  ]
  const results = await batch(slug, items)
  const codes = said(results).map((text) => (text.startsWith('run_') ? 'run' : text))
  assert.deepEqual(codes, ['run', 'VALIDATION_FAILED', 'VALIDATION_FAILED', 'NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'run'])
  const [, misfit] = results
  assert.ok(misfit && 'error' in misfit)
  assert.equal(misfit.error.detail?.path, 'input.n')
  assert.match(misfit.error.message, /does not fit/)
})

test('a key counts for its item, as in a single call', async () => {
  const { slug } = await aWorkflow(c)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: slug, input: 1, idempotencyKey: 'one' })
  const items = [
    { input: 1, idempotencyKey: 'one' },
    { input: 2, idempotencyKey: 'two' },
    { input: 3, idempotencyKey: 'one' },
    { input: 2, idempotencyKey: 'two' },
    { input: 4, idempotencyKey: 'nul\0' },
  ]
  const [first, second, third, fourth, fifth] = said(await batch(slug, items))
  assert.equal(first, run.id)
  assert.equal(third, 'IDEMPOTENCY_CONFLICT')
  assert.equal(fourth, second)
  assert.equal(fifth, 'VALIDATION_FAILED')
  assert.deepEqual(said(await batch(slug, items)).slice(0, 2), [first, second])
})

test('items are merged in their order where the workflow debounces', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { debounce: { wait: '1h', key: 'input.id' } } })
  const items = Array.from({ length: 150 }, (_, n) => ({ input: { id: n % 2, n } }))
  const results = await batch(slug, items)
  const ids = [...new Set(said(results))]
  assert.equal(ids.length, 2)
  assert.deepEqual(await inputsOf(ids), [
    { id: 0, n: 148 },
    { id: 1, n: 149 },
  ])
  const merged = results.map((result) => ('merged' in result ? result.merged : undefined))
  assert.deepEqual([merged[0], merged[2], merged.at(-1)], [undefined, 1, 74])
})

test('items are throttled in their order', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { throttle: { limit: 10, per: '1h' } } })
  const results = await batch(
    slug,
    Array.from({ length: 100 }, () => ({})),
  )
  const queuedAt = results.map((result) => ('run' in result ? result.run.queuedAt : assert.fail(result.error.message)))
  // Times are told in whole milliseconds.
  for (let i = 1; i < queuedAt.length; i++) assert.ok(queuedAt[i]! - queuedAt[i - 1]! >= -1)
  for (let i = 10; i < queuedAt.length; i++) assert.ok(queuedAt[i]! - queuedAt[i - 10]! >= 3_600_000 - 1)
})

test('what is wrong with all items refuses the request', async () => {
  const { slug, id } = await aWorkflow(c)
  await assert.rejects(batch('no-such', [{}]), refusal('NOT_FOUND'))
  await assert.rejects(batch(slug, []), refusal('VALIDATION_FAILED', 'items'))
  await assert.rejects(
    batch(
      slug,
      Array.from({ length: 1001 }, () => ({})),
    ),
    refusal('VALIDATION_FAILED', 'items'),
  )
  await assert.rejects(batch(slug, [{}, { inptu: 1 }]), refusal('VALIDATION_FAILED', 'items[1].inptu'))
  await c.call(ops.workflows.disable, { org: c.org, workflow: slug })
  await assert.rejects(batch(slug, [{}]), refusal('WORKFLOW_DISABLED'))
  const [{ count }] = await c.db<[{ count: number }]>`
    select count(*)::int as count from runs where workflow_id = ${id}`
  assert.equal(count, 0)
})

test('a batch has 16 MiB at most, or what the setting says, and takes no key of its own', async () => {
  const { slug } = await aWorkflow(c)
  const large = Array.from({ length: 12 }, () => ({ input: 'x'.repeat(1000 * KIB) }))
  assert.equal(said(await batch(slug, large)).filter((text) => text.startsWith('run_')).length, 12)
  await assert.rejects(batch(slug, [{ input: 'x'.repeat(64 * KIB) }], other), refusal('PAYLOAD_TOO_LARGE'))
  const response = await fetch(`${c.url}/v1/orgs/${c.org}/workflows/${slug}/runs/batch`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${c.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'all',
    },
    body: '{"items":[{}]}',
  })
  assert.equal(response.status, 400)
  assert.match(await response.text(), /give each item an `idempotencyKey`/)
  assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/workflows/${slug}/runs/batch`)).status, 405)
})

test('while one org starts batches, runs of another are started between their items', async () => {
  const { slug } = await aWorkflow(c)
  const neighbour = await anOrg(c)
  const theirs = await aWorkflow(c, { orgId: neighbour.id })
  const items = Array.from({ length: 1000 }, (_, input) => ({ input }))
  const batches = Array.from({ length: 4 }, () => batch(slug, items))
  const done = Promise.all(batches).then(() => 'batches')
  const single = c
    .call(ops.runs.trigger, { org: neighbour.slug, workflow: theirs.slug }, { apiKey: neighbour.apiKey })
    .then(() => 'single')
  assert.equal(await Promise.race([done, single]), 'single')
  await Promise.all([done, single])
  const [{ count }] = await c.db<[{ count: number }]>`
    select count(*)::int as count
    from runs
    where org_id = ${c.orgId} and workflow_id = (select id from workflows where slug = ${slug} and org_id = ${c.orgId})`
  assert.equal(count, 4000)
  assert.ok(await aRun(c, { workflow: slug }))
})
