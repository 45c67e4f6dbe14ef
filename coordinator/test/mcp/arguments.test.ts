import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask, refusedBy, tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { filesOf } from '../_kit/workflow-files.ts'

interface Listed {
  name: string
  inputSchema: { properties: Record<string, { default?: unknown; anyOf?: { type: string }[] }> }
}

let c: TestCoordinator
let tools: Map<string, Listed>

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const { body } = await ask(c, 'tools/list')
  tools = new Map(body.result.tools.map((listed: Listed) => [listed.name, listed]))
})
after(() => c.stop())

const schemaOf = (name: string, field: string) => tools.get(name)!.inputSchema.properties[field]!

test('a tool has the defaults of its operation', async () => {
  for (let n = 0; n < 55; n++) await c.call(ops.environments.create, { org: c.org, name: `place-${n}` })
  const first = (await tool(c, 'list_environments')).structured
  const overRest = await c.call(ops.environments.list, { org: c.org })
  assert.equal(first.environments.length, 50)
  assert.deepEqual(first, overRest)
  assert.equal(schemaOf('list_runs', 'limit').default, 50)
  assert.equal(schemaOf('get_run_output', 'limit').default, 500)
})

test('a filter that takes several values takes one as plain text, or several as REST does', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const found = async (status: unknown) => (await tool(c, 'list_runs', { status })).structured.runs.length
  assert.deepEqual([await found('queued'), await found('completed')], [1, 0])
  assert.deepEqual([await found('completed,queued'), await found(['queued'])], [1, 1])
  assert.equal(await refusedBy(c, 'list_runs', { status: 'done' }), 'VALIDATION_FAILED status[0]')
  const { events } = (await tool(c, 'get_run_output', { run: id, channels: 'lifecycle' })).structured
  assert.deepEqual(new Set(events.map(({ channel }: { channel: string }) => channel)), new Set(['lifecycle']))
  const types = schemaOf('list_runs', 'status').anyOf?.map(({ type }) => type)
  assert.deepEqual(types, ['array', 'string'])
  // What is no filter is not guessed at: a tag may have a comma in it.
  assert.equal(await refusedBy(c, 'trigger_now', { workflow: 'any', tags: 'one' }), 'VALIDATION_FAILED tags')
})

test('a version is called so wherever it is meant', async () => {
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "real" }', 'index.ts': 'export const run = () => 1' })
  await c.call(ops.workflows.create, { org: c.org, files })
  const { structured } = await tool(c, 'get_workflow_version', { workflow: 'real', version: 1 })
  assert.equal(structured.version.version, 1)
})
