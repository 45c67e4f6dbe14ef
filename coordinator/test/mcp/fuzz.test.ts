import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { newId } from '@windlass/shared/ids.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask, ERAS, headersOf, post } from '../_kit/mcp.ts'
import { aPackage } from '../_kit/tenants.ts'

let c: TestCoordinator
let run: string

before(async () => {
  c = await aCoordinator()
  // Deployed in earnest: its files are read as well.
  await c.call(ops.workflows.create, { org: c.org, files: aPackage('any') })
  run = (await aRun(c, { workflow: 'any' })).id
})
after(() => c.stop())

const json = fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' })
const odd = fc.constantFrom(
  '__proto__',
  'constructor',
  '',
  '\0',
  '\ud800',
  '../..',
  '%2e',
  -0,
  1e21,
  2 ** 53,
  null,
  [],
  {},
)
const value = fc.oneof(json, odd)

test('whatever is posted, the answer is one of the protocol and never of a fault of ours', async (t) => {
  const method = fc.oneof(
    fc.string(),
    fc.constantFrom('tools/call', 'tools/list', 'initialize', 'ping', 'resources/read'),
  )
  const message = fc.record(
    { jsonrpc: fc.constantFrom('2.0', '1.0'), id: value, method, params: value },
    { requiredKeys: [] },
  )
  const body = fc.oneof(message, fc.array(message, { maxLength: 3 }), value)
  const headers = fc.constantFrom({}, headersOf('tools/call', { name: 'get_run' }), {
    'mcp-protocol-version': '2025-06-18',
  })
  await fc.assert(
    fc.asyncProperty(body, headers, async (given, extra) => {
      const { status, text } = await post(c, JSON.stringify(given), extra)
      assert.ok([200, 202, 400, 404].includes(status), `${status}: ${text}`)
      assert.ok(!text.includes('-32603'), text)
    }),
    { numRuns: 400, ...repeatable(t) },
  )
})

test('whatever a tool is given, it answers or refuses in its own words', async (t) => {
  const known = fc.constantFrom('any', 'default', run, newId('run'), newId('inp'), newId('key'), 'NAME')
  const rows = allOps.filter((row) => row.mcp)
  const call = fc.constantFrom(...rows).chain((row) => {
    const names = fc.constantFrom(...Object.keys(row.input.shape), 'org', '__proto__', 'limit')
    const args = fc.array(fc.tuple(names, fc.oneof(known, value)), { maxLength: 5 })
    return fc.tuple(fc.constant(row.mcp!.tool), args, fc.constantFrom(...ERAS))
  })
  await fc.assert(
    fc.asyncProperty(call, async ([name, pairs, era]) => {
      // `fromEntries` defines a field of any name, also one named `__proto__`.
      const { status, body } = await ask(c, 'tools/call', { name, arguments: Object.fromEntries(pairs) }, era)
      if (status !== 200 || body.error) {
        assert.ok([-32_700, -32_602].includes(body.error.code as number), JSON.stringify(body))
        return
      }
      const { error } = JSON.parse(body.result.content[0].text) as { error?: { code: string } }
      assert.equal(body.result.isError === true, error !== undefined && 'code' in error)
      assert.ok(!['INTERNAL', 'UNAVAILABLE'].includes(error?.code ?? ''), JSON.stringify(body))
    }),
    { numRuns: 600, ...repeatable(t) },
  )
})
