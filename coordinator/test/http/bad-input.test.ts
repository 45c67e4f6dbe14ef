import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import { bodyFields, fittingPath, request, ODD, refusedWith } from './hostile.ts'
import { envelope, startStub, type StubServer } from './stub-server.ts'

// What gets past all checks reaches a stub and is answered 503: so a 5xx says that something bad was taken.

let server: StubServer
before(async () => {
  server = await startStub()
})
after(() => server.close())

// What other systems post is of their form, and judged by whoever reads it.
const rows = allOps.filter((row) => row.wire !== 'socket' && row.body !== 'raw')
const withBody = rows.filter((row) => row.method !== 'GET' && row.method !== 'DELETE')
const MOST_SENT = 4 * 1024 * 1024

async function refusesBody(bodies: Record<string, string | Uint8Array<ArrayBuffer>>, path: string): Promise<void> {
  for (const row of withBody)
    for (const [name, body] of Object.entries(bodies)) {
      const error = await refusedWith(await request(server.url, row, { body }), [400], `${row.id} ${name}`)
      assert.equal(error.code, 'VALIDATION_FAILED')
      assert.equal(error.detail?.path, path, `${row.id} ${name}`)
    }
}

test('every row with a body refuses what is no JSON object', async () => {
  const deep = `{"a":${'['.repeat(600)}${']'.repeat(600)}}`
  await refusesBody(
    {
      malformed: '{"a" 1}',
      truncated: '{"a": [1, 2',
      array: '[]',
      null: 'null',
      number: '1',
      text: '"a"',
      spaces: '   ',
      comment: '{} // so',
      deep,
      'not UTF-8': new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
      'a byte order mark': new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d]),
      'UTF-16': new Uint8Array(Buffer.from('{}', 'utf16le')),
    },
    '',
  )
})

test('every row refuses a field that it does not know, by its name', async () => {
  for (const name of ['nonsense', '__proto__', 'constructor', 'toString', '', 'a\u0000b', '\ud800', 'x'.repeat(200)]) {
    for (const row of withBody) {
      const body = `{${JSON.stringify(name)}:{"polluted":true}}`
      const error = await refusedWith(await request(server.url, row, { body }), [400], `${row.id} ${name}`)
      const paths = error.detail?.issues?.map((issue) => issue.path) ?? []
      assert.ok(paths.includes(fieldOf(name)), `${row.id} ${name}: ${paths.join()}`)
    }
  }
  assert.equal(({} as { polluted?: boolean }).polluted, undefined)
})

function fieldOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : `[${JSON.stringify(name)}]`
}

test('every field of every body names itself when its type is wrong', async () => {
  let cases = 0
  for (const row of withBody)
    for (const [name, schema] of bodyFields(row))
      for (const value of ODD.filter((odd) => !schema.safeParse(odd).success)) {
        const what = `${row.id} ${name} ${JSON.stringify(value).slice(0, 40)}`
        const body = JSON.stringify({ [name]: value })
        const error = await refusedWith(await request(server.url, row, { body }), [400], what)
        const paths = error.detail?.issues?.map((issue) => issue.path) ?? []
        assert.ok(
          paths.some((path) => path === name || path.startsWith(`${name}[`) || path.startsWith(`${name}.`)),
          what,
        )
        assert.doesNotMatch(error.message, /Invalid input|nonoptional|undefined/, what)
        cases++
      }
  assert.ok(cases > 100, String(cases))
})

test('every row refuses numbers that JSON cannot keep, with their path', async () => {
  for (const number of ['1e400', '-1e400', '9007199254740993', '123456789012345678901234567890', '1'.repeat(400)])
    for (const row of withBody) {
      const body = `{"list":[0,{"big number":${number}}]}`
      const error = await refusedWith(await request(server.url, row, { body }), [400], `${row.id} ${number}`)
      assert.equal(error.detail?.path, 'list[1]["big number"]')
    }
})

test('every row with a body takes JSON in UTF-8 only, and that plain', async () => {
  const kinds: Record<string, string>[] = [
    { 'content-type': 'text/plain' },
    { 'content-type': 'multipart/form-data; boundary=a' },
    { 'content-type': 'application/json; charset=utf-16' },
    { 'content-type': 'application/json-patch+json' },
    { 'content-type': 'application/json, application/json' },
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'br, identity' },
  ]
  for (const row of withBody)
    for (const headers of kinds) {
      const what = `${row.id} ${JSON.stringify(headers)}`
      const error = await refusedWith(await request(server.url, row, { body: '{}', headers }), [415], what)
      assert.equal(error.code, 'UNSUPPORTED_MEDIA_TYPE')
    }
})

test('every row with a body says its limit to one that is larger', async () => {
  const body = `{"a":"${'x'.repeat(MOST_SENT)}"}`
  const large = ['files', 'batch', 'delivery']
  const small = withBody.filter(({ carries = '' }) => !large.includes(carries))
  assert.ok(small.length > 5)
  for (const row of small) {
    const error = await refusedWith(await request(server.url, row, { body }), [413], row.id)
    assert.ok((error.detail?.['limitBytes'] as number) < MOST_SENT)
  }
})

test('every row refuses a query that it does not know, a name given twice and a broken escape', async () => {
  for (const row of rows) {
    const path = fittingPath(row)
    for (const [query, named] of [
      ['nonsense=1', 'nonsense'],
      ['__proto__=1', '__proto__'],
      ['same=1&same=2', 'same'],
      ['bad=%zz', 'bad'],
      ['bad=%ff', 'bad'],
      ['bad=%c0%ae', 'bad'],
    ] as const) {
      const error = await refusedWith(
        await request(server.url, row, { path: `${path}?${query}` }),
        [400],
        `${row.id} ?${query}`,
      )
      // A field that is missing may come first.
      const paths = [error.detail?.path, ...(error.detail?.issues ?? []).map((issue) => issue.path)]
      assert.ok(paths.includes(named), `${row.id} ?${query}`)
    }
  }
})

const NAMES = [
  '%2e%2e%2f%2e%2e%2fetc',
  '..%5c..%5cetc',
  '%252e%252e%252f',
  '%00',
  'a%00',
  '%ff',
  '%',
  "'%20or%201=1--",
  'x'.repeat(3000),
  '%20',
  '%E2%80%AE',
  '{}',
]

test('no name in a path leads anywhere else', async () => {
  for (const row of rows)
    for (const name of pathNames(row.path).filter((each) => !isFree(row, each)))
      for (const value of NAMES) {
        const path = fittingPath({ ...row, path: row.path.replace(`{${name}}`, '<>') }).replace('<>', value)
        const error = await refusedWith(await request(server.url, row, { path }), [400, 404], `${row.id} ${path}`)
        assert.ok(error.code === 'NOT_FOUND' || error.detail?.path === name, path)
      }
})

/** Names without a form of their own: any text may be one, and what there is not is not found. */
function isFree(row: AnyOp, name: string): boolean {
  return row.input.shape[name]?.safeParse('{}').success === true
}

test('a wrong method, a wrong case and a path too many are told as what they are', async () => {
  for (const [path, status] of [
    ['/V1/orgs/acme/runs', 404],
    ['//v1/orgs/acme/runs', 404],
    ['/v1/orgs//runs', 404],
    ['/v1/orgs/acme/runs/', 404],
    ['/v1/orgs/acme/runs;a=b', 404],
  ] as const) {
    const response = await fetch(server.url + path, { headers: { authorization: 'Bearer owner' } })
    await refusedWith(response, [status], path)
  }
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const response = await fetch(`${server.url}/v1/orgs/acme/runs`, { method })
    assert.equal((await envelope(response)).code, 'METHOD_NOT_ALLOWED')
  }
})

test('nothing of all that was logged as an error of ours', () => {
  assert.deepEqual(
    server.logged.filter((line) => line['level'] === 'error'),
    [],
  )
})
