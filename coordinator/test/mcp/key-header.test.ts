import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { OLD_ERA, post } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const headers = (key: string) => ({ 'mcp-protocol-version': OLD_ERA, 'idempotency-key': key })

const calling = (args: object = {}, id = 1) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'trigger_now', arguments: { workflow: 'any', ...args } },
})

interface Result {
  isError?: boolean
  content: { text: string }[]
}

const said = ({ content }: Result) =>
  JSON.parse(content[0]!.text) as { run?: { id: string }; error?: { code: string; detail: { path: string } } }

const countRuns = async () => {
  const [row] = await c.db<[{ count: number }]>`select count(*)::int as count from runs where org_id = ${c.orgId}`
  return row.count
}

test('a tool that starts something takes the header as its key, as its description says', async () => {
  const answers = []
  for (let i = 0; i < 2; i++) answers.push((await post(c, calling(), headers('sent again'))).body.result as Result)
  const [first, second] = answers.map(said)
  assert.ok(first!.run!.id)
  assert.equal(second!.run!.id, first!.run!.id)
  assert.equal(await countRuns(), 1)
  const unlike = await post(c, calling({ idempotencyKey: 'another' }), headers('unlike'))
  const { error } = said(unlike.body.result as Result)
  assert.deepEqual([error?.code, error?.detail.path], ['VALIDATION_FAILED', 'idempotencyKey'])
})

test('a batch takes no header as the key of several calls, and starts nothing', async () => {
  const before = await countRuns()
  const { body } = await post(c, [calling({}, 1), calling({}, 2)], headers('of several'))
  for (const { result } of body as { result: Result }[]) {
    assert.equal(result.isError, true)
    assert.equal(said(result).error?.detail.path, 'idempotencyKey')
  }
  assert.equal(await countRuns(), before)
})
