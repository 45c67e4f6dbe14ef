import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
/** Oldest first. */
const made: TestWorkflow[] = []

before(async () => {
  c = await aCoordinator()
  for (let i = 0; i < 5; i++) made.push(await aWorkflow(c))
  for (let i = 0; i < 4; i++) await aVersion(c, made[0]!)
})
after(() => c.stop())

const list = (query: { limit?: number; cursor?: string } = {}) => c.call(ops.workflows.list, { org: c.org, ...query })
const versions = (query: { limit?: number; cursor?: string } = {}) =>
  c.call(ops.workflows.listVersions, { org: c.org, workflow: made[0]!.slug, ...query })

test('workflows come newest first, in pages', async () => {
  const slugs: string[] = []
  let cursor: string | undefined
  do {
    const page = await list({ limit: 2, cursor })
    slugs.push(...page.workflows.map((workflow) => workflow.slug))
    cursor = page.nextCursor ?? undefined
  } while (cursor)
  assert.deepEqual(slugs, made.map(({ slug }) => slug).toReversed())
  assert.equal((await list({ limit: 5 })).nextCursor, null)
  assert.equal((await list()).workflows.at(-1)?.version, 5)
})

test('versions come newest first, in pages', async () => {
  const first = await versions({ limit: 3 })
  const second = await versions({ limit: 3, cursor: first.nextCursor! })
  assert.deepEqual(
    [...first.versions, ...second.versions].map(({ version }) => version),
    [5, 4, 3, 2, 1],
  )
  assert.equal(second.nextCursor, null)
})

test('a cursor of another list, or none, is refused', async () => {
  const { nextCursor } = await list({ limit: 1 })
  for (const cursor of [
    '',
    'x',
    Buffer.from('run_00000000000000000000000000').toString('base64url'),
    'A'.repeat(200),
  ]) {
    await assert.rejects(list({ cursor }), refusal('VALIDATION_FAILED', 'cursor'), cursor)
    await assert.rejects(versions({ cursor }), refusal('VALIDATION_FAILED', 'cursor'), cursor)
  }
  await assert.rejects(versions({ cursor: nextCursor! }), refusal('VALIDATION_FAILED', 'cursor'))
  await assert.rejects(list({ cursor: 'A'.repeat(201) }), refusal('VALIDATION_FAILED', 'cursor'))
})

test('a version that does not exist is 404, however large its number', async () => {
  for (const n of [6, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
    await assert.rejects(
      c.call(ops.workflows.getVersion, { org: c.org, workflow: made[0]!.slug, version: n }),
      refusal('NOT_FOUND'),
    )
  }
  for (const n of ['0', '-1', '1.5', 'x']) {
    assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/workflows/${made[0]!.slug}/versions/${n}`)).status, 404, n)
  }
})

test('a list that has not changed is 304 to whoever has it', async () => {
  const address = `${c.url}/v1/orgs/${c.org}/workflows`
  const headers = { authorization: `Bearer ${c.apiKey}` }
  const first = await fetch(address, { headers })
  await first.text()
  const again = await fetch(address, { headers: { ...headers, 'if-none-match': first.headers.get('etag')! } })
  assert.equal(again.status, 304)
})

test("another org's lists are empty, and ours looks absent to it", async () => {
  const strangers = await anOrg(c)
  assert.deepEqual(await c.call(ops.workflows.list, { org: strangers.slug }, strangers), {
    workflows: [],
    nextCursor: null,
  })
  const ask = { org: strangers.slug, workflow: made[0]!.slug }
  await assert.rejects(c.call(ops.workflows.listVersions, ask, strangers), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.workflows.getVersion, { ...ask, version: 1 }, strangers), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.workflows.list, { org: c.org }, strangers), refusal('NOT_FOUND'))
})

test('a new version is what triggers run, through another coordinator after a second at the latest', async () => {
  const second = await c.another()
  const workflow = await aWorkflow(c)
  assert.equal((await aRun(second, { workflow: workflow.slug })).workflow.version, 1)
  await aVersion(c, workflow)
  assert.equal((await aRun(c, { workflow: workflow.slug })).workflow.version, 2)
  await untilPolled(
    'the new version',
    async () => (await aRun(second, { workflow: workflow.slug })).workflow.version === 2,
  )
})
