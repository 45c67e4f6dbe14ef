import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, rawCall, type TestCoordinator, type TestOrg } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { type Envelope, envelope } from './stub-server.ts'

let c: TestCoordinator
let other: TestOrg
/** The path of a trigger. */
const trigger = () => `/v1/orgs/${c.org}/workflows/any/runs`

before(async () => {
  c = await aCoordinator()
  other = await anOrg(c)
  for (let version = 1; version <= 3; version++) await aWorkflow(c, { slug: `any${version === 1 ? '' : version}` })
  for (let i = 0; i < 3; i++) await aRun(c, { workflow: 'any' })
})
after(() => c.stop())

async function refused(method: string, path: string, body?: string): Promise<Envelope['error']> {
  const response = await rawCall(c, method, path, body)
  assert.equal(response.status, 400, `${method} ${path} ${body} ${await response.clone().text()}`)
  const error = await envelope(response)
  assert.equal(error.code, 'VALIDATION_FAILED')
  return error
}

const escaped = (text: string) => JSON.stringify(text).slice(1, -1)
const cursorOf = (key: string) => encodeURIComponent(Buffer.from(key).toString('base64url'))

test('U+0000 is refused with the name of its field, wherever it cannot be stored', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  for (const [method, path, field, body] of [
    ['POST', `/v1/runs/${id}/cancel`, 'reason', `{"reason":"a${escaped('\0')}"}`],
    ['POST', trigger(), 'tags[1]', `{"tags":["a","b${escaped('\0')}"]}`],
    ['POST', trigger(), 'idempotencyKey', `{"idempotencyKey":"${escaped('\0')}"}`],
    ['GET', `/v1/orgs/${c.org}/runs?tag=a%00`, 'tag', undefined],
    ['PUT', `/v1/orgs/${c.org}/variables/a%00`, 'name', '{"value":"x"}'],
  ] as const)
    assert.equal((await refused(method, path, body)).detail?.path, field, path)
})

test('a path that holds U+0000 names nothing', async () => {
  for (const path of [`/v1/orgs/${c.org}/variables/a%00`, `/v1/orgs/${c.org}/environments/%00`])
    assert.equal((await rawCall(c, 'DELETE', path)).status, 404, path)
})

test('half of a surrogate pair is refused where another character would be stored for it', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  assert.equal((await refused('POST', `/v1/runs/${id}/cancel`, '{"reason":"a\\ud800"}')).detail?.path, 'reason')
  assert.equal((await refused('POST', trigger(), '{"tags":["\\udfff"]}')).detail?.path, 'tags[0]')
  const files = '{"files":[{"path":"a.ts","content":"\\ud800 "}]}'
  assert.equal((await refused('POST', `/v1/orgs/${c.org}/workflows`, files)).detail?.path, 'files[0].content')
})

test('a free value comes back as it was sent, odd characters and all', async () => {
  for (const input of [
    '"a\\u0000b"',
    '"\\ud800"',
    '{"\\u0000":{"__proto__":1,"constructor":{}}}',
    '[1e300,-1.5,9007199254740992]',
  ]) {
    const response = await rawCall(c, 'POST', trigger(), `{"input":${input}}`)
    assert.equal(response.status, 201, input)
    const { run } = (await response.json()) as { run: { id: string } }
    const shown = await (await rawCall(c, 'GET', `/v1/runs/${run.id}/input`)).text()
    assert.equal(shown, `{"input":${JSON.stringify(JSON.parse(input))}}`)
  }
})

test('a whole number that would come back as another one is refused with its path', async () => {
  for (const number of ['9007199254740993', '-9007199254740993', '10000000000000000000001']) {
    const error = await refused('POST', trigger(), `{"input":{"ids":[1,${number}]}}`)
    assert.equal(error.detail?.path, 'input.ids[1]')
    assert.match(error.message, /it would become -?\d+; send it as a text\.$/)
  }
})

test('a fraction where a whole number belongs, and a field that is missing, are told with the way out', async () => {
  assert.match(
    (await refused('POST', trigger(), '{"delayMs":1.5}')).message,
    /`delayMs` must be a whole number, without a fraction$/,
  )
  assert.match((await refused('POST', trigger(), '{"delayMs":1e300}')).message, /^`delayMs` must be <=31622400000$/)
  const respond = `/v1/inputs/inp_${'0'.repeat(26)}/respond`
  assert.match(
    (await refused('POST', respond, '{}')).message,
    /^`answer` is missing; give any JSON value, such as null$/,
  )
})

test('an idempotency key that a header cannot carry is refused, and the body takes it', async () => {
  const key = 'cl\u00e9 1'
  const headers = { authorization: `Bearer ${c.apiKey}`, 'content-type': 'application/json' }
  const post = (body: string, more = {}) =>
    fetch(c.url + trigger(), { method: 'POST', headers: { ...headers, ...more }, body })
  const error = await envelope(await post('{}', { 'idempotency-key': key }))
  assert.equal(error.detail?.path, 'idempotencyKey')
  assert.match(error.message, /ASCII characters only; send this one as `idempotencyKey` in the body/)
  assert.equal((await post(JSON.stringify({ idempotencyKey: key }))).status, 201)
  assert.equal((await post(JSON.stringify({ idempotencyKey: key }))).status, 200)
})

test('a cursor that is none, or of another list, is refused by its name', async () => {
  const { nextCursor } = await c.call(ops.workflows.list, { org: c.org, limit: 1 })
  assert.ok(nextCursor)
  const odd = [
    'abc',
    '%00',
    '..%2f',
    cursorOf('1 or 1=1'),
    cursorOf(`run_${'z'.repeat(27)}`),
    cursorOf('99999999999999999999'),
    'a'.repeat(200),
  ]
  const lists = [
    `/v1/orgs/${c.org}/runs`,
    `/v1/orgs/${c.org}/workflows`,
    `/v1/orgs/${c.org}/inputs`,
    `/v1/orgs/${c.org}/workflows/any/versions`,
    `/v1/orgs/${c.org}/runners`,
  ]
  for (const list of lists)
    for (const cursor of odd)
      assert.equal((await refused('GET', `${list}?cursor=${cursor}`)).detail?.path, 'cursor', `${list} ${cursor}`)
  for (const list of lists.filter((each) => !each.endsWith('/workflows')))
    assert.equal((await refused('GET', `${list}?cursor=${nextCursor}`)).detail?.path, 'cursor', list)
  assert.equal((await refused('GET', `${lists[0]}?cursor=${'a'.repeat(201)}`)).detail?.path, 'cursor')
})

test("another org's cursor opens nothing of it", async () => {
  const { nextCursor } = await c.call(ops.runs.list, { org: c.org, limit: 1 })
  const response = await rawCall(
    { url: c.url, apiKey: other.apiKey },
    'GET',
    `/v1/orgs/${other.slug}/runs?cursor=${nextCursor}`,
  )
  assert.deepEqual([response.status, await response.json()], [200, { runs: [], nextCursor: null }])
})

test('numbers at the edge of what is whole find nothing, and break nothing', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  for (const [path, status] of [
    [`/v1/orgs/${c.org}/runs?createdAfter=9007199254740991`, 200],
    [`/v1/orgs/${c.org}/runs?createdBefore=-9007199254740991`, 200],
    [`/v1/orgs/${c.org}/runs?createdAfter=9007199254740992`, 400],
    [`/v1/runs/${id}/events?since=9007199254740991`, 200],
    [`/v1/orgs/${c.org}/workflows/any/versions/9007199254740991`, 404],
    [`/v1/orgs/${c.org}/audit?createdAfter=9007199254740991`, 200],
    [`/v1/orgs/${c.org}/audit?createdBefore=0`, 200],
  ] as const) {
    const response = await rawCall(c, 'GET', path)
    assert.equal(response.status, status, `${path} ${await response.text()}`)
  }
})
