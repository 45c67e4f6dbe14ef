import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

function deploy(slug: string, types: string) {
  const source = `${types}\nexport const run = (input: Input): string => typeof input`
  return c.call(ops.workflows.create, {
    org: c.org,
    files: filesOf({ 'workflow.jsonc': `{ "slug": "${slug}" }`, 'index.ts': source }),
  })
}

const keys = (count: number) => Array.from({ length: count }, (_, n) => `'k${n}'`).join(' | ')

test('the schema of types that multiply is compiled outside of the coordinator', async () => {
  const compiled = moment('tools.done', ({ name, org }) => name === 'judging' && org === c.orgId)
  await deploy(
    'table',
    `interface Cell { a?: number | { b: string } } interface Row extends Record<Column, Cell> {}
     type Column = ${keys(300)}
     type Input = { [K in Column]?: Row }`,
  )
  assert.equal((await compiled).kind, 'answer')
  const misfit = aRun(c, { workflow: 'table', input: { k7: { k9: 5 } } })
  await assert.rejects(misfit, refusal('VALIDATION_FAILED'))
})

test("types that are too large to be checked are the customer's to mend, and the message names them", async () => {
  const wide = Array.from({ length: 20_000 }, (_, n) => `k${n}: string`).join('\n')
  const error = await deploy('wide', `interface Input {\n${wide}\n}`).catch((error: unknown) => error)
  assert.ok(error instanceof ApiError)
  assert.deepEqual([error.status, error.code, error.detail?.['file']], [400, 'VALIDATION_FAILED', 'index.ts'])
  assert.match(error.message, /^the input type of `run` in index.ts is too large to be checked: .* 131072 are allowed/)
})
