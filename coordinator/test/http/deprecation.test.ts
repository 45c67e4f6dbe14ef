import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { type AnyOp, type Deprecation, isForCallers } from '@windlass/shared/ops/op.ts'
import { operation } from '../../api/openapi-operation.ts'
import { RUN, startStub, type StubServer } from './stub-server.ts'

const GOING: Deprecation = { since: '2026-11-01', sunset: '2027-05-01', use: '/v1/runs/{run}/output' }
/** The row while this file runs. */
const row: { deprecated?: Deprecation } = ops.runs.input

let server: StubServer

before(async () => {
  Object.assign(row, { deprecated: GOING })
  server = await startStub({
    handlers: { 'runs.input': () => ({ input: 1 }), 'runs.output': () => ({ output: 1 }) },
  })
})
after(async () => {
  await server.close()
  delete row.deprecated
})

const get = (path: string, credential?: string) =>
  fetch(server.url + path, { headers: credential === undefined ? {} : { authorization: `Bearer ${credential}` } })

test('answers of a row that is going say since when, until when and what to use, refusals too', async () => {
  for (const [credential, status] of [
    ['owner', 200],
    [undefined, 401],
  ] as const) {
    const { status: found, headers } = await get(`/v1/runs/${RUN}/input`, credential)
    assert.equal(found, status)
    assert.equal(headers.get('deprecation'), '@1793491200')
    assert.equal(headers.get('sunset'), 'Sat, 01 May 2027 00:00:00 GMT')
    assert.equal(headers.get('link'), '</v1/runs/{run}/output>; rel="successor-version"')
  }
  const { headers } = await get(`/v1/runs/${RUN}/output`, 'owner')
  assert.deepEqual([headers.get('deprecation'), headers.get('sunset'), headers.get('link')], [null, null, null])
})

test('OpenAPI marks such a row, and no other', () => {
  const { deprecated, description } = operation(ops.runs.input)
  assert.equal(deprecated, true)
  assert.match(description ?? '', /^Deprecated since 2026-11-01: use `\/v1\/runs\/\{run\}\/output`/)
  const marked = (allOps as AnyOp[]).filter((one) => isForCallers(one) && operation(one).deprecated === true)
  assert.deepEqual(
    marked.map(({ id }) => id),
    ['runs.input'],
  )
})

test('a row that goes is there for six months at least', () => {
  for (const { id, deprecated } of allOps as AnyOp[])
    if (deprecated) assert.ok(Date.parse(deprecated.sunset) - Date.parse(deprecated.since) >= 181 * 86_400_000, id)
})
