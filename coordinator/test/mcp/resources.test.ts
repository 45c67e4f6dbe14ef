import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, end, line, returned, type Held } from '../_kit/agent.ts'
import { aCoordinator, anOrg, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { ask, ERAS } from '../_kit/mcp.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator
let held: Held
let run: string

before(async () => {
  c = await aCoordinator()
  const files = filesOf({
    'workflow.jsonc': '{ "slug": "told", "name": "Told" }',
    'index.ts': 'export const run = () => 1',
    'lib/deep/one.ts': 'export {}',
  })
  await c.call(ops.workflows.create, { org: c.org, files })
  run = (await aRun(c, { workflow: 'told' })).id
  held = await aRunningAgent(c)
})
after(async () => {
  held.agent.close()
  await c.stop()
})

const read = async (uri: string, apiKey = c.apiKey) =>
  (await ask({ url: c.url, apiKey }, 'resources/read', { uri })).body
const log = `windlass://runs/`

test('the newest runs and workflows are listed, each can be read', async () => {
  for (const era of ERAS) {
    const { resources } = (await ask(c, 'resources/list', {}, era)).body.result
    assert.deepEqual(
      resources.map(({ uri }: { uri: string }) => uri),
      ['windlass://workflows/told/files/workflow.jsonc', `windlass://runs/${run}/events`],
    )
    for (const { uri, mimeType } of resources) {
      const { contents } = (await ask(c, 'resources/read', { uri }, era)).body.result
      assert.deepEqual([contents[0].uri, contents[0].mimeType], [uri, mimeType])
    }
  }
})

test('the log of a run is told in lines, and says how to go on while the run does', async () => {
  await held.link.report(held.offer, 2, line('hello'), ['e', Date.now(), 'phase', '{"name":"first"}'])
  const going = (await read(`${log}${run}/events`)).result.contents[0].text as string
  assert.match(going, /^#1 \d{4}-\d\d-\d\dT[\d:.]+Z run\.queued /)
  assert.match(going, /#4 \S+ log\.stdout hello\n#5 \S+ phase \{"name":"first"\}\n\[The run goes on\. .*`since` 5\.\]$/)
  await held.link.report(held.offer, 4, end(returned(1)))
  const done = (await read(`${log}${run}/events`)).result.contents[0].text as string
  assert.match(done, /output \{.*1.*\}\n#\d+ \S+ run\.completed/)
  assert.ok(!done.includes('goes on'))
})

test('templates say how to reach every run and every file', async () => {
  const { resourceTemplates } = (await ask(c, 'resources/templates/list')).body.result
  assert.deepEqual(
    resourceTemplates.map(({ uriTemplate }: { uriTemplate: string }) => uriTemplate),
    ['windlass://runs/{run}/events', 'windlass://workflows/{workflow}/files/{+path}'],
  )
  assert.equal((await read('windlass://workflows/told/files/lib/deep/one.ts')).result.contents[0].text, 'export {}')
})

test('what is not there, or is not ours, is not found', async () => {
  const stranger = await anOrg(c)
  const mine = [`${log}${run}/events`, 'windlass://workflows/told/files/index.ts']
  for (const uri of mine) assert.equal((await read(uri, stranger.apiKey)).error.code, -32_602)
  const nowhere = [
    `${log}${newId('run')}/events`,
    `${log}x/events`,
    'windlass://workflows/told/files/indx.ts',
    'windlass://workflows/told/files/../index.ts',
    'windlass://workflows/told/files/%2e%2e%2findex.ts',
    'windlass://workflows/told/files/%ff',
    'windlass://workflows/none/files/index.ts',
    'file:///etc/passwd',
    'http://127.0.0.1/',
    '',
  ]
  for (const uri of nowhere) assert.equal((await read(uri)).error?.code, -32_602, uri)
  assert.match((await read('windlass://workflows/told/files/indx.ts')).error.message, /did you mean `index.ts`/)
  assert.equal((await ask(c, 'resources/read', { uri: 'x:y' }, 'old')).body.error.code, -32_602)
})

test('a resource wants the scope of what it shows', async () => {
  const runsOnly = await aKey(c.db, { orgId: c.orgId, scopes: ['run:read'] })
  assert.ok((await read(`${log}${run}/events`, runsOnly)).result)
  const { error } = await read('windlass://workflows/told/files/index.ts', runsOnly)
  assert.equal(error.data.code, 'FORBIDDEN')
  const { resources } = (await ask({ url: c.url, apiKey: runsOnly }, 'resources/list')).body.result
  assert.deepEqual(resources.length, 1)
})

test('what is typed of a template is completed', async () => {
  const complete = async (uri: string, name: string, value: string, known = {}) => {
    const params = { ref: { type: 'ref/resource', uri }, argument: { name, value }, context: { arguments: known } }
    return (await ask(c, 'completion/complete', params)).body.result.completion.values as string[]
  }
  const file = 'windlass://workflows/{workflow}/files/{+path}'
  assert.deepEqual(await complete(file, 'workflow', 'to'), ['told'])
  assert.deepEqual(await complete(file, 'workflow', 'x'), [])
  assert.deepEqual(await complete(file, 'path', 'lib', { workflow: 'told' }), ['lib/deep/one.ts'])
  assert.deepEqual(await complete(file, 'path', ''), [])
  assert.deepEqual(await complete('windlass://runs/{run}/events', 'run', 'run_'), [run])
  assert.deepEqual(await complete('windlass://nothing/{at}', 'at', ''), [])
})
