import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { anOrg, aCoordinator, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let other: TestWorkflow
/** Oldest first. */
const runs: Run[] = []

before(async () => {
  c = await aCoordinator()
  await anEnvironment(c, 'staging')
  await aWorkflow(c, { slug: 'any' })
  other = await aWorkflow(c, { slug: 'other' })
  for (let i = 0; i < 7; i++) {
    const tags = i % 2 ? ['odd', 'all'] : ['all']
    runs.push(await aRun(c, { workflow: i < 5 ? 'any' : 'other', tags, ...(i === 3 && { environment: 'staging' }) }))
  }
  await c.call(ops.runs.cancel, { run: runs[0]!.id })
})
after(() => c.stop())

type Query = Omit<ArgsOf<typeof ops.runs.list>, 'org'>

const list = (query: Query) => c.call(ops.runs.list, { org: c.org, ...query })
const idsOf = async (query: Query) => (await list(query)).runs.map((run) => run.id)
/** Newest first, as a list answers. */
const ids = (...indexes: number[]) => indexes.map((i) => runs[i]!.id)

test('a list is newest first, in pages that leave nothing out and repeat nothing', async () => {
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await list({ limit: 3, cursor })
    assert.ok(page.runs.length <= 3)
    seen.push(...page.runs.map((run) => run.id))
    cursor = page.nextCursor ?? undefined
  } while (cursor)
  assert.deepEqual(seen, ids(6, 5, 4, 3, 2, 1, 0))
  assert.equal((await list({ limit: 7 })).nextCursor, null)
})

test('runs that come in between do not shift the pages', async () => {
  const first = await list({ limit: 2, workflow: 'other' })
  assert.deepEqual(
    first.runs.map((run) => run.id),
    ids(6, 5),
  )
  const paged = await list({ limit: 2 })
  const late = await aRun(c, { workflow: 'any', tags: ['late'] })
  const second = await list({ limit: 2, cursor: paged.nextCursor! })
  assert.deepEqual(
    second.runs.map((run) => run.id),
    ids(4, 3),
  )
  await c.db`delete from run_queue where run_id = ${late.id}`
  await c.db`delete from run_events where run_id = ${late.id}`
  await c.db`delete from runs where id = ${late.id}`
})

test('each filter leaves what fits, alone and together', async () => {
  assert.deepEqual(await idsOf({ status: ['cancelled'] }), ids(0))
  assert.deepEqual(await idsOf({ status: ['cancelled', 'queued'], limit: 100 }), ids(6, 5, 4, 3, 2, 1, 0))
  assert.deepEqual(await idsOf({ workflow: 'other' }), ids(6, 5))
  assert.deepEqual(await idsOf({ workflow: other.id }), ids(6, 5))
  assert.deepEqual(await idsOf({ environment: 'staging' }), ids(3))
  assert.deepEqual(await idsOf({ tag: 'odd' }), ids(5, 3, 1))
  assert.deepEqual(await idsOf({ trigger: 'retry' }), [])
  assert.deepEqual(await idsOf({ tag: 'odd', workflow: 'any', status: ['queued'] }), ids(3, 1))
  assert.deepEqual(await idsOf({ status: ['running'] }), [])
})

test('times of creation bound a list, however far away they are', async () => {
  const [from, to] = [runs[2]!.createdAt, runs[4]!.createdAt]
  const between = await idsOf({ createdAfter: from - 1, createdBefore: to + 1 })
  for (const id of ids(2, 3, 4)) assert.ok(between.includes(id))
  // The database counts in microseconds: to a reader this one was created at the same time.
  await c.db`
    update runs
    set created_at = date_trunc('milliseconds', created_at) + interval '900 microseconds'
    where id = ${runs[2]!.id}`
  assert.ok(!(await idsOf({ createdAfter: from })).includes(runs[2]!.id))
  assert.ok(!(await idsOf({ createdBefore: from })).includes(runs[2]!.id))
  for (const far of [Number.MAX_SAFE_INTEGER, 8.64e15]) {
    assert.deepEqual(await idsOf({ createdAfter: far }), [])
    assert.equal((await idsOf({ createdBefore: far })).length, 7)
    assert.deepEqual(await idsOf({ createdBefore: -far }), [])
    assert.equal((await idsOf({ createdAfter: -far })).length, 7)
  }
})

test('a cursor that is none is told', async () => {
  for (const cursor of ['x', '', Buffer.from('wf_00000000000000000000000000').toString('base64url'), '%00']) {
    await assert.rejects(list({ cursor }), refusal('VALIDATION_FAILED', 'cursor'), cursor)
  }
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'status=done', 'unknown=1']) {
    assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/runs?${query}`)).status, 400, query)
  }
})

test('a run and a list that have not changed are 304 to whoever has them, and 200 when they have', async () => {
  const { id } = await aRun(c, { workflow: 'other' })
  for (const path of [`/v1/runs/${id}`, `/v1/orgs/${c.org}/runs?workflow=other`]) {
    const get = (etag?: string) =>
      fetch(c.url + path, { headers: { authorization: `Bearer ${c.apiKey}`, ...(etag && { 'if-none-match': etag }) } })
    const first = await get()
    const etag = first.headers.get('etag')!
    assert.match(etag, /^"[\w-]+"$/)
    await first.text()
    const second = await get(etag)
    assert.equal(second.status, 304)
    assert.equal(await second.text(), '')
    assert.equal(second.headers.get('etag'), etag)
    await c.db`update runs set cost_micros = cost_micros + 1 where id = ${id}`
    const third = await get(etag)
    assert.equal(third.status, 200)
    assert.notEqual(third.headers.get('etag'), etag)
    await third.text()
  }
  await c.call(ops.runs.cancel, { run: id })
})

test("another org's runs, and unknown ones, look absent to every operation", async () => {
  const { id } = runs[1]!
  const { apiKey, slug } = await anOrg(c)
  for (const run of [id, newId('run')]) {
    const key = run === id ? apiKey : c.apiKey
    for (const rest of ['', '/input', '/output', '/events', '/events/stream']) {
      assert.equal((await rawCall({ url: c.url, apiKey: key }, 'GET', `/v1/runs/${run}${rest}`)).status, 404, rest)
    }
  }
  assert.deepEqual(await c.call(ops.runs.list, { org: slug }, { apiKey }), { runs: [], nextCursor: null })
  assert.deepEqual((await c.call(ops.runs.list, { org: slug, workflow: 'any' }, { apiKey })).runs, [])
  await assert.rejects(c.call(ops.runs.list, { org: c.org }, { apiKey }), refusal('NOT_FOUND'))
})
