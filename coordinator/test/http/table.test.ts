import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { type StubServer, envelope, pathOf, startStub } from './stub-server.ts'

let server: StubServer
before(async () => {
  server = await startStub()
})
after(() => server.close())

// Which credential serves for which row is the matter of matrix.test.ts.

async function assertRefused(response: Response, status: number, code: string, row: AnyOp): Promise<void> {
  assert.equal(response.status, status, row.id)
  assert.equal((await envelope(response)).code, code, row.id)
  assert.match(response.headers.get('x-request-id') ?? '', /^req_/, row.id)
}

test('every path answers 405 with `Allow` to the methods it does not have', async () => {
  for (const path of new Set(allOps.map((row) => row.path))) {
    const rows = allOps.filter((row) => row.path === path)
    const has = new Set<string>(rows.flatMap((row) => (row.method === 'GET' ? ['GET', 'HEAD'] : [row.method])))
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((one) => !has.has(one))) {
      const response = await fetch(server.url + pathOf(rows[0]!), { method })
      assert.deepEqual(new Set(response.headers.get('allow')?.split(', ')), has, `${method} ${path}`)
      await assertRefused(response, 405, 'METHOD_NOT_ALLOWED', rows[0]!)
    }
  }
})

test('an unknown path is 404 with an envelope, also without a credential', async () => {
  for (const path of ['/', '/v1', '/v1/nothing', '/v1/orgs/acme/runs/', '/v2/orgs/acme/runs', '/V1/orgs/acme/runs']) {
    const response = await fetch(server.url + path)
    assert.equal(response.status, 404, path)
    assert.equal((await envelope(response)).code, 'NOT_FOUND', path)
  }
})
