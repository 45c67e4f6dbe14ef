import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { pagesOf } from '../_kit/pages.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

const promote = async (workflow: string, version: number) =>
  (await c.call(ops.workflows.promote, { org: c.org, workflow, version })).workflow

const files = (slug: string, text: string, more: object = {}) =>
  filesOf({
    'workflow.jsonc': JSON.stringify({ slug, ...more }),
    'index.ts': `export async function run() { return ${JSON.stringify(text)} }\n`,
  })

test('a version is made without being made current, tried by its number, and promoted', async () => {
  const { org } = c
  const slug = 'tried'
  await c.call(ops.workflows.create, { org, files: files(slug, 'one', { name: 'First' }) })
  const { version } = await c.call(ops.workflows.createVersion, {
    org,
    workflow: slug,
    files: files(slug, 'two', { name: 'Second' }),
  })
  assert.equal(version.version, 2)
  const { workflow } = await c.call(ops.workflows.get, { org, workflow: slug })
  assert.deepEqual([workflow.version, workflow.name], [1, 'First'])
  assert.equal((await aRun(c, { workflow: slug })).workflow.version, 1)
  assert.equal((await aRun(c, { workflow: slug, version: 2 })).workflow.version, 2)

  const promoted = await promote(slug, 2)
  assert.deepEqual([promoted.version, promoted.name], [2, 'Second'])
  assert.equal((await aRun(c, { workflow: slug })).workflow.version, 2)
  // The next number counts on from the highest, also after a roll back.
  assert.equal((await promote(slug, 1)).name, 'First')
  const again = await c.call(ops.workflows.update, { org, workflow: slug, files: files(slug, 'three') })
  assert.deepEqual([again.version.version, again.workflow.version], [3, 3])

  const { auditEntries } = await c.call(ops.audit.list, { org, target: workflow.id })
  assert.deepEqual(
    auditEntries.map(({ action, before, after }) => [action, before?.['version'], after?.['version']]),
    [
      ['workflows.update', 1, 3],
      ['workflows.promote', 2, 1],
      ['workflows.promote', 1, 2],
      ['workflows.createVersion', undefined, 2],
      ['workflows.create', undefined, 1],
    ],
  )
})

test('changes are made to any version that is there', async () => {
  const { org } = c
  const slug = 'changed'
  await c.call(ops.workflows.create, { org, files: [...files(slug, 'one'), { path: 'README.md', content: '1' }] })
  const make = async (baseVersion: number, content: string) => {
    const changes = [{ path: 'README.md', content }]
    return c.call(ops.workflows.createVersion, { org, workflow: slug, baseVersion, changes })
  }
  await make(1, '2')
  await make(2, '3')
  const { files: found } = await c.call(ops.workflows.getVersion, { org, workflow: slug, version: 3 })
  assert.equal(found.find(({ path }) => path === 'README.md')?.content, '3')
  await assert.rejects(make(9, '4'), refusal('CONFLICT', 'baseVersion'))
  const foreign = { org, workflow: slug, files: files('another', 'one') }
  await assert.rejects(c.call(ops.workflows.createVersion, foreign), refusal('CONFLICT', 'slug'))
  const changes = [{ path: 'README.md', content: '4' }]
  await assert.rejects(
    c.call(ops.workflows.createVersion, { org, workflow: slug, changes }),
    refusal('VALIDATION_FAILED', 'baseVersion'),
  )
})

test('to promote the current version changes nothing, and an unknown one is not found', async () => {
  const workflow = await aWorkflow(c)
  await aVersion(c, workflow)
  const before = await promote(workflow.slug, 2)
  assert.deepEqual(await promote(workflow.id, 2), before)
  await assert.rejects(promote(workflow.slug, 3), refusal('NOT_FOUND'))
  await assert.rejects(promote(workflow.slug, 2_000_000_000), refusal('NOT_FOUND'))
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: workflow.id })
  assert.equal(auditEntries.length, 0)
})

test('promotions and deploys at once follow one another, and the audit log has all in turn', async () => {
  const made = await aWorkflow(c)
  const { id, slug } = made
  await aVersion(c, made)
  const deploy = (text: string) =>
    c.call(ops.workflows.update, { org: c.org, workflow: slug, files: files(slug, text) })
  const deploys = ['a', 'b', 'c'].map(deploy)
  await Promise.all([...Array.from({ length: 10 }, (_, i) => promote(slug, 1 + (i % 2))), ...deploys])
  const { versions } = await c.call(ops.workflows.listVersions, { org: c.org, workflow: slug })
  assert.deepEqual(
    versions.map(({ version }) => version).toSorted((a, b) => a - b),
    [1, 2, 3, 4, 5],
  )
  // Each entry begins where the one before it has ended.
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, target: id, limit: 100 })
  const versionIn = (facts: unknown) => Number((facts as { version?: number } | null)?.version)
  const turns = auditEntries.toReversed().map(({ before, after }) => ({ was: versionIn(before), is: versionIn(after) }))
  assert.equal(turns.filter(({ is }) => is > 2).length, 3)
  const ends = turns.map(({ is }) => is)
  assert.deepEqual(
    turns.slice(1).map(({ was }) => was),
    ends.slice(0, -1),
  )
  const { workflows } = await c.call(ops.workflows.list, { org: c.org, limit: 100 })
  assert.equal(workflows.find((one) => one.id === id)?.version, ends.at(-1))
})

test("another org's workflow looks absent", async () => {
  const { id, slug } = await aWorkflow(c)
  const stranger = await anOrg(c)
  const as = { apiKey: stranger.apiKey }
  for (const workflow of [id, slug]) {
    const at = { org: stranger.slug, workflow }
    await assert.rejects(c.call(ops.workflows.promote, { ...at, version: 1 }, as), refusal('NOT_FOUND'))
    const sent = { ...at, files: files(slug, 'x') }
    await assert.rejects(c.call(ops.workflows.createVersion, sent, as), refusal('NOT_FOUND'))
  }
})

test('a page of large versions has fewer of them, and leads on to the others', async () => {
  const workflow = await aWorkflow(c)
  for (let n = 0; n < 4; n++) await aVersion(c, workflow)
  await c.db`
    update workflow_versions
    set input_schema = json_build_object('description', repeat('x', 400000))
    where workflow_id = ${workflow.id}`
  const pages = await pagesOf(
    (page) => c.call(ops.workflows.listVersions, { org: c.org, workflow: workflow.slug, limit: 100, ...page }),
    ({ versions }) => versions.map(({ version }) => String(version)),
  )
  assert.deepEqual(pages, [['5', '4'], ['3', '2'], ['1']])
})
