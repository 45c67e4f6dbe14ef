import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import type { Operator } from '../../accounts/operator.ts'
import { revokeSession } from '../../accounts/sessions.ts'
import { keyPair, registration } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinator, anOrg, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession, mintApiKey } from '../_kit/credentials.ts'

let c: TestCoordinator
let x: string

before(async () => {
  c = await aCoordinator()
  x = (await keyPair()).x
})
after(() => c.stop())

type TokenAsk = Partial<ArgsOf<typeof ops.pools.createToken>>

const mint = async (ask: TokenAsk = {}, apiKey = c.apiKey) =>
  (await c.call(ops.pools.createToken, { pool: c.poolId, ...ask }, { apiKey })).registrationToken
const register = (token: string) => callOp({ url: c.url }, ops.runnerSurface.register, registration(token, x))
const aPool = async (name: string) => (await c.call(ops.pools.create, { org: c.org, name })).runnerPool.id
const anAdmin = () => mintApiKey(c.db, { orgId: c.orgId, name: 'stolen', role: 'admin' })
const revokeKey = (key: string) => c.call(ops.keys.revoke, { org: c.org, key })

test('tokens end with the key that has made them, which says how many let somebody in', async () => {
  const { id, key } = await anAdmin()
  const reusable = await mint({ reusable: true, uses: 1000, ttlMs: 86_400_000 }, key)
  const once = await mint({}, key)
  const spent = await mint({}, key)
  const others = await mint()
  await register(reusable.token)
  await register(spent.token)
  const entries = await entriesBy(c, async () => {
    assert.deepEqual(await revokeKey(id), { schedules: 0, registrationTokens: 2, jobs: 0 })
    assert.deepEqual(await revokeKey(id), { schedules: 0, registrationTokens: 0, jobs: 0 })
  })
  assert.deepEqual(
    entries.map(({ action, before: was }) => [action, was?.['registrationTokens']]),
    [['keys.revoke', 2]],
  )
  for (const { token } of [reusable, once, spent])
    await assert.rejects(register(token), refusal('UNAUTHENTICATED', 'token'))
  await register(others.token)
})

test('tokens end with the session that has made them', async () => {
  const secret = await aSession(c.db, { orgId: c.orgId })
  const { id, token } = await mint({}, secret)
  const operator: Operator = { kind: 'operator', id: 'ada', name: 'ada', via: 'admin', requestId: null }
  const [entry] = await entriesBy(c, async () => {
    assert.equal((await revokeSession(c.db, operator, secret)).registrationTokens, 1)
  })
  assert.deepEqual([entry?.action, entry?.before?.['registrationTokens']], ['sessions.revoke', 1])
  await assert.rejects(register(token), refusal('UNAUTHENTICATED', 'token'))
  await assert.rejects(c.call(ops.pools.revokeToken, { token: id }), refusal('NOT_FOUND'))
})

test('a key that is being revoked makes no token that outlives it', async () => {
  const { id, key } = await anAdmin()
  let minted: Promise<unknown> | undefined
  await c.db.begin(async (tx) => {
    // As another coordinator revokes it, of which this one has not heard.
    await tx`select from api_keys where id = ${id} for update`
    minted = mint({}, key)
    void minted.catch(() => {})
    await untilBlocked(c.db, '%api_keys%for key share%')
    await tx`update api_keys set revoked_at = now() where id = ${id}`
  })
  await assert.rejects(minted!, refusal('UNAUTHENTICATED'))
  assert.deepEqual([...(await c.db`select id from registration_tokens where created_by = ${id}`)], [])
})

test('of tokens that are made while their key is revoked none serves', async () => {
  const { id, key } = await anAdmin()
  const made = Array.from({ length: 20 }, () => mint({}, key))
  const settled = Promise.allSettled(made)
  await made[0]
  await revokeKey(id)
  for (const one of await settled)
    if (one.status === 'fulfilled') await assert.rejects(register(one.value.token), refusal('UNAUTHENTICATED', 'token'))
})

test('a list has the tokens of a pool that let somebody in, newest first, page by page', async () => {
  const pool = await aPool('listed')
  const made = [
    await mint({ pool }),
    await mint({ pool, reusable: true, uses: 3 }),
    await mint({ pool, ttlMs: 60_000 }),
  ]
  const [spent, expired] = [await mint({ pool }), await mint({ pool })]
  await register(made[1]!.token)
  await register(spent.token)
  await c.db`update registration_tokens set expires_at = now() where id = ${expired.id}`
  const first = await c.call(ops.pools.listTokens, { pool: 'listed', limit: 2 })
  const rest = await c.call(ops.pools.listTokens, { pool, limit: 2, cursor: first.nextCursor! })
  assert.equal(rest.nextCursor, null)
  const all = [...first.registrationTokens, ...rest.registrationTokens]
  assert.deepEqual(
    all.map(({ id, usesLeft, expiresAt }) => [id, usesLeft, expiresAt]),
    made.toReversed().map(({ id, expiresAt }, n) => [id, [1, 2, 1][n], expiresAt]),
  )
  const { me } = await c.call(ops.account.get, {})
  for (const { pool: of, createdBy, createdAt } of all) {
    assert.deepEqual([of, createdBy], [{ id: pool, name: 'listed' }, me.credential.id])
    assert.ok(Math.abs(createdAt - Date.now()) < 60_000)
  }
  for (const { token } of made) assert.ok(!JSON.stringify(all).includes(token.slice(4)), 'a list shows a token')
})

test('a token that is revoked lets nobody in any more; who has joined stays', async () => {
  const { id, token, expiresAt } = await mint({ reusable: true, uses: 5 })
  const { runner } = await register(token)
  const entries = await entriesBy(c, () => c.call(ops.pools.revokeToken, { token: id }))
  const { me } = await c.call(ops.account.get, {})
  const was = { pool: { id: c.poolId, name: 'default' }, usesLeft: 4, expiresAt, createdBy: me.credential.id }
  assert.deepEqual(
    entries.map((entry) => [entry.action, entry.target.id, entry.before]),
    [['pools.revokeToken', id, was]],
  )
  await assert.rejects(register(token), refusal('UNAUTHENTICATED', 'token'))
  assert.equal((await c.call(ops.runners.get, { runner })).runner.id, runner)
  await assert.rejects(c.call(ops.pools.revokeToken, { token: id }), refusal('NOT_FOUND'))
})

test("another org's tokens are not there", async () => {
  const { id, token } = await mint()
  const { apiKey } = await anOrg(c)
  await assert.rejects(c.call(ops.pools.listTokens, { pool: c.poolId }, { apiKey }), refusal('NOT_FOUND'))
  for (const one of [id, newId('rtok')])
    await assert.rejects(c.call(ops.pools.revokeToken, { token: one }, { apiKey }), refusal('NOT_FOUND'))
  await register(token)
})
