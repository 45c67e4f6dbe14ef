import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { hasRole, ROLES, SCOPES } from '@windlass/shared/scopes.ts'
import { type StubServer, envelope, goodBearer, pathOf, startStub } from './stub-server.ts'

let server: StubServer
before(async () => {
  server = await startStub()
})
after(() => server.close())

const guarded = allOps.filter((row) => row.door !== 'public')
const forCallers = allOps.filter((row) => row.door === 'caller')

function knock(row: AnyOp, bearer: string | undefined, path = pathOf(row)): Promise<Response> {
  const headers: Record<string, string> = { ...(bearer && { authorization: `Bearer ${bearer}` }) }
  return fetch(server.url + path, { method: row.method, headers })
}

async function assertRefused(response: Response, status: number, code: string, row: AnyOp): Promise<void> {
  assert.equal(response.status, status, row.id)
  assert.equal((await envelope(response)).code, code, row.id)
  assert.match(response.headers.get('x-request-id') ?? '', /^req_/, row.id)
}

test('every guarded row answers 401 without a credential', async () => {
  for (const row of guarded) {
    const response = await knock(row, undefined)
    assert.equal(response.headers.get('www-authenticate'), 'Bearer', row.id)
    await assertRefused(response, 401, 'UNAUTHENTICATED', row)
  }
})

test('every guarded row answers 401 to a credential that nobody knows', async () => {
  for (const row of guarded) await assertRefused(await knock(row, 'nonsense'), 401, 'UNAUTHENTICATED', row)
})

test("every guarded row answers 401 to another door's credential", async () => {
  const credentials = ['owner', 'runner', 'program']
  for (const row of guarded) {
    for (const bearer of credentials.filter((other) => other !== goodBearer(row))) {
      await assertRefused(await knock(row, bearer), 401, 'UNAUTHENTICATED', row)
    }
  }
})

test('every row for callers answers 403 to a role that is too low, and names the one it needs', async () => {
  for (const row of forCallers) {
    const tooLow = ROLES.filter((role) => row.role !== null && !hasRole(role, row.role)).at(-1)
    if (tooLow === undefined) continue
    const response = await knock(row, tooLow)
    assert.equal(response.status, 403, row.id)
    const error = await envelope(response)
    assert.equal(error.code, 'FORBIDDEN')
    assert.ok(error.message.includes(row.role ?? ''), error.message)
  }
})

test('every row for callers answers 403 to a list of scopes without its own', async () => {
  for (const row of forCallers) {
    const others = SCOPES.filter((scope) => !row.scope.includes(scope))
    await assertRefused(await knock(row, `owner=${others.join(',')}`), 403, 'FORBIDDEN', row)
  }
})

test('every row for callers lets in each of its scopes, the least role and an empty list', async () => {
  for (const row of forCallers) {
    const bearers = [row.role ?? 'viewer', ...row.scope.map((scope) => `${row.role}=${scope}`)]
    for (const bearer of bearers) {
      const { status } = await knock(row, bearer)
      assert.ok(status !== 401 && status !== 403 && status !== 404, `${row.id} answered ${status} to ${bearer}`)
    }
  }
})

test("another org's slug looks absent, to the lowest role as to the highest", async () => {
  for (const row of forCallers.filter((one) => one.path.includes('{org}'))) {
    await assertRefused(await knock(row, 'owner@stranger'), 404, 'NOT_FOUND', row)
    await assertRefused(await knock(row, 'viewer=billing:read@stranger'), 404, 'NOT_FOUND', row)
  }
})

test("a program's token opens its own run only", async () => {
  for (const row of allOps.filter((one) => one.door === 'program' && one.path.includes('{run}'))) {
    const other = row.path.replace('{run}', `run_${'0'.repeat(26)}`)
    await assertRefused(await knock(row, 'program', other), 404, 'NOT_FOUND', row)
  }
})

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
