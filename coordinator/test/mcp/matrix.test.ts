import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { hasRole, ROLES, SCOPES } from '@windlass/shared/scopes.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { ownedNames, REFERENCES, sampleArgs } from '../_kit/matrix-samples.ts'
import { refusedBy, tool } from '../_kit/mcp.ts'
import { type Tenant, twoTenants } from '../_kit/tenants.ts'

// The same matrix as over REST, for what a tool can be asked: whoever asks, the row decides.

let c: TestCoordinator
let ours: Tenant
let theirs: Tenant

const TOOLS = allOps.filter((row) => row.mcp && !isSessionOnly(row))

before(async () => {
  c = await aCoordinator()
  ;({ ours, theirs } = await twoTenants(c))
})
after(async () => {
  ours.agent.close()
  theirs.agent.close()
  await c.stop()
})

const refusal = (apiKey: string, row: AnyOp, args: object) =>
  refusedBy({ url: c.url, apiKey }, row.mcp!.tool, { ...args })
/** A caller who is let in is told what is wrong with the arguments. */
const PASSED = 'VALIDATION_FAILED unheardOf'
/** Gets as far as the arguments, and no further. */
const answerTo = (apiKey: string, row: AnyOp) => refusal(apiKey, row, { ...sampleArgs(row, ours), unheardOf: 1 })

/** What a list holds. */
async function listed(row: AnyOp, args: object): Promise<unknown> {
  const { structured } = await tool({ url: c.url, apiKey: ours.owner }, row.mcp!.tool, { ...args })
  return Object.values(structured as object).find(Array.isArray)
}

test('every tool asks for the role and the scope of its row', async (t) => {
  let cases = 0
  const keys = await Promise.all(ROLES.map(async (role) => [role, await aKey(c.db, { orgId: c.orgId, role })] as const))
  for (const row of TOOLS) {
    for (const [role, key] of keys) {
      const expected = hasRole(role, row.role!) ? PASSED : 'FORBIDDEN'
      assert.equal(await answerTo(key, row), expected, `${row.id} as ${role}`)
      cases++
    }
    const others = await aKey(c.db, { orgId: c.orgId, scopes: SCOPES.filter((scope) => !row.scope.includes(scope)) })
    assert.equal(await answerTo(others, row), 'FORBIDDEN', `${row.id} with every scope but its own`)
    for (const scope of row.scope) {
      const key = await aKey(c.db, { orgId: c.orgId, scopes: [scope] })
      assert.equal(await answerTo(key, row), PASSED, `${row.id} with ${scope}`)
    }
    cases += 1 + row.scope.length
  }
  t.diagnostic(`${cases} cases: ${TOOLS.length} tools`)
})

test("what is another org's is found by no tool", async (t) => {
  let cases = 0
  for (const row of TOOLS) {
    const args = sampleArgs(row, ours)
    const theirOrg = { ...args, org: theirs.org }
    if ('org' in row.input.shape) assert.equal(await refusal(ours.owner, row, theirOrg), 'NOT_FOUND', `${row.id}: org`)
    // A name that a row makes or sets anew is nobody else's.
    const names = ownedNames(row).filter((name) => row.id !== 'variables.set' || name !== 'name')
    for (const name of [...names, REFERENCES[row.id]].filter((one) => one !== undefined)) {
      const foreign = { ...args, [name]: theirs.ids[name] }
      if (names.includes(name) || row.method !== 'GET')
        assert.equal(await refusal(ours.owner, row, foreign), 'NOT_FOUND', `${row.id}: ${name}`)
      else assert.deepEqual(await listed(row, foreign), [], `${row.id}: a filter finds nothing`)
      cases++
    }
  }
  t.diagnostic(`${cases} cases`)
  assert.ok(cases > 20)
})

test('an id that nothing can have, and one of another org, are not found, whatever the caller may do', async () => {
  const viewer = await aKey(c.db, { orgId: theirs.c.orgId, role: 'viewer', scopes: ['billing:read'] })
  for (const row of TOOLS) {
    const args = sampleArgs(row, ours)
    const names = ownedNames(row).filter((name) => row.id !== 'variables.set' || name !== 'name')
    for (const name of names)
      assert.equal(await refusal(ours.owner, row, { ...args, [name]: 'NO such id!' }), 'NOT_FOUND', row.id)
    if (names.length > 0) assert.equal(await refusal(viewer, row, args), 'NOT_FOUND', row.id)
  }
})
