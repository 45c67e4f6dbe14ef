import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { aCoordinator, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

test('a number beyond what JSON can keep is refused with its path, and large ones that are numbers are taken', async () => {
  const trigger = (body: string) => rawCall(c, 'POST', `/v1/orgs/${c.org}/workflows/any/runs`, body)
  for (const number of ['1e400', '-1e400', '1'.repeat(400)]) {
    const refused = await trigger(`{"input":{"list":[1,{"big number":${number}}]}}`)
    assert.equal(refused.status, 400)
    const { error } = (await refused.json()) as { error: { code: string; detail: { path: string } } }
    assert.deepEqual([error.code, error.detail.path], ['VALIDATION_FAILED', 'input.list[1]["big number"]'])
  }
  for (const number of ['1e300', '1.5E+308', `"${'1'.repeat(400)}"`, '"1e400"'])
    assert.equal((await trigger(`{"input":${number}}`)).status, 201, number)
})

test('a body that is nearly all brackets or names is refused before it is parsed', async () => {
  const nested = '['.repeat(400) + ']'.repeat(400)
  const lists = (count: number) => `[${Array.from({ length: count / 400 }, () => nested).join()}]`
  const names = Array.from({ length: 100_001 }, (_, n) => `"n${n}":1`).join()
  const filling = '"' + '['.repeat(1_200_000) + '"'
  const refusals: [path: string, body: string][] = [
    [`/v1/orgs/${c.org}/workflows/any/runs`, `{"input":${lists(300_400)}}`],
    [`/v1/orgs/${c.org}/workflows`, `{"files":${lists(1_000_000)}}`],
    [`/v1/orgs/${c.org}/workflows`, `{"files":[],"filling":${filling},"names":{${names}}}`],
    ['/mcp/v1', lists(1_000_000)],
  ]
  for (const [path, body] of refusals) {
    const refused = await rawCall(c, 'POST', path, body)
    assert.equal(refused.status, 400)
    assert.match(await refused.text(), /too many values/)
  }
  const taken = await rawCall(c, 'POST', `/v1/orgs/${c.org}/workflows/any/runs`, `{"input":${lists(200_000)}}`)
  assert.equal(taken.status, 201)
})
