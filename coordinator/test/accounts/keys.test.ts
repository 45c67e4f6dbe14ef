import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isWellFormed } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import type { ApiKey } from '@windlass/shared/model/api-key.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import {
  aCoordinator,
  anOrg,
  asOwner,
  rawCall,
  refusal,
  type TestCoordinator,
  type TestOrg,
} from '../_kit/coordinator.ts'
import { aKey, aSession } from '../_kit/credentials.ts'
import { untilPolled } from '../_kit/until.ts'

let c: TestCoordinator
let session: string
let strangers: TestOrg

before(async () => {
  c = await aCoordinator()
  session = await aSession(c.db, { orgId: c.orgId })
  strangers = await anOrg(c)
})
after(() => c.stop())

type Ask = Partial<Omit<ArgsOf<typeof ops.keys.create>, 'org'>>
const create = (ask: Ask = {}, as = session) =>
  c.call(ops.keys.create, { org: c.org, name: 'ci', role: 'member', ...ask }, { apiKey: as })
const revoke = (key: string, as = c.apiKey) => c.call(ops.keys.revoke, { org: c.org, key }, { apiKey: as })
const status = async (token: string, at = c) => (await rawCall({ url: at.url, apiKey: token }, 'GET', '/v1/me')).status

async function entriesOf(key: string) {
  return c.db<{ action: string; actorKind: string; before: unknown; after: unknown }[]>`
    select action, actor_kind, before, after from audit_log where target_id = ${key} order by id`
}

test('a session makes a key, which is shown once and then serves', async () => {
  const { apiKey, key } = await create({ scopes: ['run:read', 'run:read', 'run:trigger'] })
  assert.ok(isWellFormed('wl_', key))
  assert.equal(apiKey.prefix, key.slice(0, 10))
  assert.deepEqual(apiKey.scopes, ['run:read', 'run:trigger'])
  assert.deepEqual([apiKey.org, apiKey.role, apiKey.expiresAt, apiKey.revokedAt], [c.org, 'member', null, null])
  assert.match(apiKey.createdBy ?? '', /^ses_/)
  const { me } = await c.call(ops.account.get, {}, { apiKey: key })
  assert.deepEqual(me.credential, { kind: 'key', id: apiKey.id, name: 'ci', role: 'member', scopes: apiKey.scopes })
  assert.equal(me.org.slug, c.org)
  const [entry, ...more] = await entriesOf(apiKey.id)
  assert.deepEqual([entry?.action, entry?.actorKind, more], ['keys.create', 'session', []])
  assert.ok(!JSON.stringify(entry).includes(key.slice(10)), 'the audit log holds the key')
})

test('a key makes no key, whatever its role', async () => {
  await assert.rejects(create({}, c.apiKey), refusal('FORBIDDEN'))
})

test('nobody makes a key of a higher role than his own', async () => {
  const admins = await aSession(c.db, { orgId: c.orgId, role: 'admin' })
  assert.equal((await create({ role: 'admin' }, admins)).apiKey.role, 'admin')
  await assert.rejects(create({ role: 'owner' }, admins), refusal('FORBIDDEN', 'role'))
})

test('an expiry lies in the future, and ends the key', async () => {
  for (const expiresAt of [0, -1, Date.now() - 60_000, 8_640_000_000_000_001, Number.MAX_SAFE_INTEGER])
    await assert.rejects(create({ expiresAt }), refusal('VALIDATION_FAILED', 'expiresAt'))
  const expiresAt = Date.now() + 60_000
  const { apiKey, key } = await create({ expiresAt })
  assert.equal(apiKey.expiresAt, expiresAt)
  assert.equal(await status(key), 200)
  await c.db`update api_keys set expires_at = now() where id = ${apiKey.id}`
  c.deps.callers.forget(apiKey.id)
  assert.equal(await status(key), 401)
})

test('a name that cannot be stored or read is refused by its path', async () => {
  for (const name of ['a\0b', '\ud800', '   ', '', 'x'.repeat(101)])
    await assert.rejects(create({ name }), refusal('VALIDATION_FAILED', 'name'))
})

test('a revoked key is out at once where it was revoked, and within a second elsewhere', async () => {
  const { apiKey, key } = await create()
  const there = await c.another()
  assert.deepEqual([await status(key), await status(key, there)], [200, 200])
  await revoke(apiKey.id)
  assert.equal(await status(key), 401)
  await untilPolled('the other to refuse it', async () => (await status(key, there)) === 401)
})

test('revoking again changes nothing and leaves no second entry', async () => {
  const { apiKey } = await create()
  await Promise.all(Array.from({ length: 10 }, () => revoke(apiKey.id)))
  await revoke(apiKey.id)
  assert.deepEqual(
    (await entriesOf(apiKey.id)).map((entry) => entry.action),
    ['keys.create', 'keys.revoke'],
  )
})

test('a look-up that was under way when its key was revoked is not kept', async () => {
  const { apiKey, key } = await create()
  // Its statement is sent before that of the revocation, and may read the key as it was.
  const early = c.deps.callers.verify(key)
  await revoke(apiKey.id)
  await early.catch(() => undefined)
  assert.equal(await status(key), 401)
})

test('an admin key revokes itself', async () => {
  const { apiKey, key } = await create({ role: 'admin' })
  await revoke(apiKey.id, key)
  assert.equal(await status(key), 401)
})

test("another org's key looks absent, and is left alone", async () => {
  const [theirs] = await c.db<{ id: string }[]>`select id from api_keys where org_id = ${strangers.id}`
  await assert.rejects(revoke(theirs!.id), refusal('NOT_FOUND'))
  await assert.rejects(revoke(newId('key')), refusal('NOT_FOUND'))
  assert.equal(await status(strangers.apiKey), 200)
})

test('lists show all keys of the org, newest first, page by page, and never a secret', async () => {
  const as = await aKey(c.db, { orgId: strangers.id })
  const made = [strangers.apiKey, as]
  for (const state of ['expired', 'revoked', undefined] as const)
    made.push(await aKey(c.db, { orgId: strangers.id, role: 'viewer', scopes: ['run:read'], state }))
  const all: ApiKey[] = []
  let cursor: string | undefined
  do {
    const page = await c.call(ops.keys.list, { org: strangers.slug, limit: 2, cursor }, { apiKey: as })
    assert.ok(page.apiKeys.length <= 2)
    all.push(...page.apiKeys)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  assert.deepEqual(
    all.map((key) => key.prefix),
    made.map((key) => key.slice(0, 10)).toReversed(),
  )
  assert.equal(all.filter((key) => key.revokedAt !== null).length, 1)
  assert.equal(all.filter((key) => key.expiresAt !== null).length, 1)
  for (const key of made) assert.ok(!JSON.stringify(all).includes(key.slice(10)), 'a list shows a key')
  await assert.rejects(
    c.call(ops.keys.list, { org: c.org, cursor: 'bm9uc2Vuc2U' }),
    refusal('VALIDATION_FAILED', 'cursor'),
  )
})

test('a session tells of itself, and of its org', async () => {
  const { me } = await c.call(ops.account.get, {}, { apiKey: session })
  assert.deepEqual([me.credential.kind, me.credential.role, me.credential.scopes], ['session', 'owner', []])
  const { org } = await c.call(ops.orgs.get, { org: c.org })
  assert.deepEqual(me.org, org)
  assert.deepEqual([org.id, org.slug], [c.orgId, c.org])
})

test('where the path carries no org a header may name it, and it must be that of the credential', async () => {
  const get = (headers: Record<string, string>) => c.call(ops.account.get, {}, { headers })
  assert.equal((await get({ 'x-windlass-org': c.org })).me.org.slug, c.org)
  assert.equal((await get({ 'x-service-org': c.org })).me.org.slug, c.org)
  await assert.rejects(get({ 'x-windlass-org': strangers.slug }), refusal('NOT_FOUND'))
  await assert.rejects(get({ 'x-windlass-org': c.org, 'x-service-org': strangers.slug }), refusal('NOT_FOUND'))
})

test('a session that was revoked a moment ago elsewhere makes no key', async () => {
  const o = asOwner(c, await anOrg(c, 'late'))
  const session = await aSession(o.db, { orgId: o.orgId })
  // From here on it is known to this coordinator, for a second.
  await o.call(ops.account.get, {}, { apiKey: session })
  await o.db`update operator_sessions set revoked_at = now() where org_id = ${o.orgId}`
  const ask = { org: o.org, name: 'survivor', role: 'owner' } as const
  await assert.rejects(o.call(ops.keys.create, ask, { apiKey: session }), { code: 'UNAUTHENTICATED' })
  assert.equal((await o.db`select from api_keys where org_id = ${o.orgId} and name = 'survivor'`).length, 0)
})
