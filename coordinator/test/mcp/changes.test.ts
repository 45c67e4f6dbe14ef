import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { aCoordinator, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask, refusedBy, tool } from '../_kit/mcp.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const INDEX = 'export const run = () => 1'
const README = '# Long\n'.repeat(5000)

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

const deploy = async (slug: string, more: Record<string, string> = {}) => {
  const files = filesOf({ 'workflow.jsonc': `{ "slug": "${slug}" }`, 'index.ts': INDEX, ...more })
  await c.call(ops.workflows.create, { org: c.org, files })
}

async function filesNow(workflow: string): Promise<Record<string, string>> {
  const { files } = await c.call(ops.workflows.get, { org: c.org, workflow })
  return Object.fromEntries(files.map(({ path, content }) => [path, content]))
}

test('files that get_workflow showed cut are refused by name, and the version stays', async () => {
  await deploy('cut', { 'README.md': README })
  const { structured } = await tool(c, 'get_workflow', { workflow: 'cut' })
  const files = structured.files as SourceFile[]
  assert.equal(await refusedBy(c, 'update_workflow', { workflow: 'cut', files }), 'VALIDATION_FAILED files[0].content')
  const more = files.map(({ path, content }) => ({ path, content: `${content}\n` }))
  const { value } = await tool(c, 'update_workflow', { workflow: 'cut', files: more })
  assert.match(value.error.message, /README\.md.*get_workflow_file/)
  assert.equal((await filesNow('cut'))['README.md'], README)
})

test('so is the text of a resource that was cut', async () => {
  const long = README.repeat(6)
  await deploy('resource', { 'README.md': long })
  const { body } = await ask(c, 'resources/read', { uri: 'windlass://workflows/resource/files/README.md' })
  const changes = [{ path: 'README.md', content: body.result.contents[0].text }]
  const refused = await refusedBy(c, 'update_workflow', { workflow: 'resource', changes, baseVersion: 1 })
  assert.equal(refused, 'VALIDATION_FAILED changes[0].content')
})

test('changes leave the other files as they are', async () => {
  await deploy('changed', { 'README.md': README, 'lib/old.ts': 'export {}', 'ä.txt': 'ä👋' })
  const changes = [
    { path: 'lib/old.ts', content: null },
    { path: 'lib/new.ts', content: 'export const two = 2' },
    { path: 'index.ts', content: "import { two } from './lib/new.ts'\nexport const run = () => two" },
  ]
  const { structured } = await tool(c, 'update_workflow', { workflow: 'changed', changes, baseVersion: 1 })
  assert.equal(structured.workflow.version, 2)
  assert.deepEqual(await filesNow('changed'), {
    'workflow.jsonc': '{ "slug": "changed" }',
    'README.md': README,
    'ä.txt': 'ä👋',
    'lib/new.ts': changes[1]!.content,
    'index.ts': changes[2]!.content,
  })
})

test('changes to a version that is not the current one are refused, at once and behind another deploy', async () => {
  await deploy('contended')
  const update = (content: string) => {
    const ask = { org: c.org, workflow: 'contended', changes: [{ path: 'note.txt', content }], baseVersion: 1 }
    return c.call(ops.workflows.update, ask)
  }
  const made = await Promise.allSettled(['a', 'b', 'c'].map(update))
  assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of made) if (one.status === 'rejected') refusal('CONFLICT', 'baseVersion')(one.reason as Error)
  await assert.rejects(update('d'), refusal('CONFLICT', 'baseVersion'))
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "contended" }', 'index.ts': INDEX })
  const stale = { org: c.org, workflow: 'contended', files, baseVersion: 1 }
  await assert.rejects(c.call(ops.workflows.update, stale), refusal('CONFLICT', 'baseVersion'))
})

test('what is no update is refused by the field', async () => {
  await deploy('strict', { 'lib/one.ts': 'export {}' })
  const refused = (args: object) => refusedBy(c, 'update_workflow', { workflow: 'strict', ...args })
  const changes = [{ path: 'a.txt', content: 'a' }]
  assert.equal(await refused({}), 'VALIDATION_FAILED files')
  assert.equal(await refused({ baseVersion: 1 }), 'VALIDATION_FAILED files')
  assert.equal(await refused({ changes }), 'VALIDATION_FAILED baseVersion')
  assert.equal(await refused({ changes, files: changes, baseVersion: 1 }), 'VALIDATION_FAILED changes')
  const twice = [...changes, ...changes]
  assert.equal(await refused({ changes: twice, baseVersion: 1 }), 'VALIDATION_FAILED changes[1].path')
  const gone = [{ path: 'lib/ono.ts', content: null }]
  const { value } = await tool(c, 'update_workflow', { workflow: 'strict', changes: gone, baseVersion: 1 })
  assert.equal(value.error.detail.path, 'changes[0].path')
  assert.match(value.error.message, /did you mean `lib\/one\.ts`/)
  const all = ['workflow.jsonc', 'index.ts', 'lib/one.ts'].map((path) => ({ path, content: null }))
  assert.equal(await refused({ changes: all, baseVersion: 1 }), 'VALIDATION_FAILED files')
  assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/workflows/strict/versions/2`)).status, 404)
})

test('what the other files take in memory counts as what a deploy sends', async () => {
  await deploy('counted', { 'README.md': README.repeat(6) })
  const changes = [{ path: 'a.txt', content: 'a' }]
  const update = () => c.call(ops.workflows.update, { org: c.org, workflow: 'counted', changes, baseVersion: 1 })
  const holding = c.deps.bodies.hold(c.orgId)
  holding.take(c.deps.config.maxOrgDeploysBytes)
  await assert.rejects(update(), refusal('RATE_LIMITED')).finally(() => holding.release())
  await update()
  // All is given back: there is room for the largest of them again.
  const again = c.deps.bodies.hold(c.orgId)
  again.take(c.deps.config.maxOrgDeploysBytes)
  again.release()
})
