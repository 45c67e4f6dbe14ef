import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, anOrg, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { refusedBy, tool } from '../_kit/mcp.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const MOST_CHARS = 20_000
const INDEX = 'export const run = () => 1'
/** Ends of lines, quotes, a character that JSON writes in six, and pairs of surrogates. */
const README = `"a" line\n\u0001 ${'👋ä\n'.repeat(30)}`.repeat(300)

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

const deploy = (slug: string, more: Record<string, string> = {}) => {
  const files = filesOf({ 'workflow.jsonc': `{ "slug": "${slug}" }`, 'index.ts': INDEX, ...more })
  return c.call(ops.workflows.create, { org: c.org, files })
}

/** The file as a client puts it together from its parts. */
async function readWhole(ask: { workflow: string; path: string; version?: number }): Promise<string> {
  let whole = ''
  for (let offset: number | null = 0; offset !== null;) {
    const { structured, texts } = await tool(c, 'get_workflow_file', { ...ask, offset })
    assert.ok(texts[0]!.length <= MOST_CHARS, `${texts[0]!.length} characters`)
    assert.equal(structured.cut, undefined)
    assert.equal(structured.part.offset, whole.length)
    assert.equal(structured.file.path, ask.path)
    assert.ok(structured.file.content.isWellFormed())
    whole += structured.file.content
    offset = structured.part.nextOffset
    assert.equal(structured.part.chars, README.length)
  }
  return whole
}

test('a file of any length is read whole in parts, also one of an earlier version', async () => {
  await deploy('parts', { 'lib/README.md': README })
  assert.equal(await readWhole({ workflow: 'parts', path: 'lib/README.md' }), README)
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "parts" }', 'index.ts': INDEX })
  await c.call(ops.workflows.update, { org: c.org, workflow: 'parts', files })
  const gone = await refusedBy(c, 'get_workflow_file', { workflow: 'parts', path: 'lib/README.md' })
  assert.equal(gone, 'NOT_FOUND lib/README.md')
  assert.equal(await readWhole({ workflow: 'parts', path: 'lib/README.md', version: 1 }), README)
  const { structured } = await tool(c, 'get_workflow_file', { workflow: 'parts', path: 'index.ts' })
  const part = { offset: 0, chars: INDEX.length, nextOffset: null }
  assert.deepEqual(structured, { file: { path: 'index.ts', content: INDEX }, version: 2, part })
})

test('an offset within a pair gives the whole character, one behind the end gives nothing', async () => {
  await deploy('edges', { 'a.txt': 'x👋y' })
  const at = async (offset: number) => {
    const ask = { org: c.org, workflow: 'edges', path: 'a.txt', offset }
    const { file, part } = await c.call(ops.workflows.file, ask)
    return [file.content, part.offset, part.nextOffset]
  }
  assert.deepEqual(await at(1), ['👋y', 1, null])
  assert.deepEqual(await at(2), ['👋y', 1, null])
  assert.deepEqual(await at(3), ['y', 3, null])
  assert.deepEqual(await at(4), ['', 4, null])
  assert.deepEqual(await at(9), ['', 9, null])
})

test('a file of a folder is reached over REST too, and a name that is near is told', async () => {
  await deploy('folders', { 'lib/one.ts': 'export {}' })
  const at = (path: string) => rawCall(c, 'GET', `/v1/orgs/${c.org}/workflows/folders/files/${path}`)
  const { file } = (await (await at('lib%2Fone.ts')).json()) as { file: object }
  assert.deepEqual(file, { path: 'lib/one.ts', content: 'export {}' })
  const none = await at('lib%2Fono.ts')
  assert.equal(none.status, 404)
  assert.match(await none.text(), /did you mean `lib\/one\.ts`/)
  assert.equal((await at('..%2Fworkflow.jsonc')).status, 404)
  const stranger = await anOrg(c)
  const foreign = { workflow: 'folders', path: 'lib/one.ts' }
  assert.equal(await refusedBy({ url: c.url, apiKey: stranger.apiKey }, 'get_workflow_file', foreign), 'NOT_FOUND')
})

test('where a file is cut, the answer says how to read it whole', async () => {
  await deploy('long', { 'README.md': README })
  const { texts } = await tool(c, 'get_workflow', { workflow: 'long' })
  assert.match(texts[1]!, /`files\[\d\]\.content` has \d+ characters.*get_workflow_file/)
  const version = await tool(c, 'get_workflow_version', { workflow: 'long', version: 1 })
  assert.match(version.texts[1]!, /get_workflow_file with `version` 1/)
})
