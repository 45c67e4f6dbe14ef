import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createCallers } from '../../accounts/callers.ts'
import { createKey, listKeys, revokeKey } from '../../admin/keys.ts'
import { type Admin, openAdmin } from '../../admin/open.ts'
import { createOrg, listOrgs } from '../../admin/orgs.ts'
import { createSession, listSessions, revokeSession } from '../../admin/sessions.ts'
import type { Database } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { refusal } from '../_kit/coordinator.ts'

const log = createLog({}, 'error')
const HOUR_MS = 3_600_000
let database: Database
let admin: Admin

before(async () => {
  database = await testDatabase()
  admin = await openAdmin({ databaseUrl: database.url, user: 'ada@host' })
  await createOrg(admin, { slug: 'acme', name: 'Acme' })
})
after(async () => {
  await admin.close()
  await database.close()
})

const verify = (token: string) => createCallers({ db: database.db, log }).verify(token)
const aSession = () => createSession(admin, { org: 'acme', name: 'work', role: 'admin', lifeMs: HOUR_MS })
const says = (message: RegExp) => (error: Error & { code?: string }) =>
  error.code === 'UNAUTHENTICATED' && message.test(error.message)

test('an org is made with a pool, and its slug is taken once, however many ask at once', async () => {
  const asked = await Promise.allSettled(
    Array.from({ length: 20 }, () => createOrg(admin, { slug: 'wanted', name: 'Wanted' })),
  )
  const made = asked.filter((one) => one.status === 'fulfilled')
  assert.equal(made.length, 1)
  for (const one of asked)
    if (one.status === 'rejected') assert.equal((one.reason as { code: string }).code, 'CONFLICT')
  const { id } = made[0]!.value
  const pools = await database.db`select name from runner_pools where org_id = ${id}`
  assert.deepEqual([...pools], [{ name: 'default' }])
  const entries = await database.db`select actor_kind, actor_id, via, action from audit_log where org_id = ${id}`
  assert.deepEqual([...entries], [{ actorKind: 'operator', actorId: 'ada@host', via: 'admin', action: 'orgs.create' }])
  assert.deepEqual(
    (await listOrgs(admin)).map((org) => org.slug),
    ['acme', 'wanted'],
  )
})

test('a database that a preview made is refused by name, not as one that is newer', async (t) => {
  const preview = await testDatabase()
  t.after(() => preview.close())
  await preview.db`update windlass_migrations set name = 'spine' where number = 1`
  await preview.db`
    insert into windlass_migrations (number, name, checksum, breaking)
    select n, 'more', '', false from generate_series(100, 120) as n`
  await assert.rejects(openAdmin({ databaseUrl: preview.url, user: 'ada@host' }), /by a preview of Windlass/)
})

test('a session leads to its org and role, and is no key', async () => {
  const { session, secret } = await aSession()
  const { id: orgId } = (await listOrgs(admin)).find((org) => org.slug === 'acme')!
  assert.deepEqual(await verify(secret), {
    kind: 'session',
    id: session.id,
    name: 'work',
    orgId,
    org: 'acme',
    role: 'admin',
    scopes: [],
  })
  await assert.rejects(verify(secret.replace('wls_', 'wl_')), says(/no API key/))
})

test('of a session only the hash is stored, and neither list nor audit log shows it', async () => {
  const { session, secret } = await aSession()
  const [row] = await database.db`select * from operator_sessions where id = ${session.id}`
  assert.ok(Buffer.from(row!.hash as Uint8Array).equals(hash('sha256', secret, 'buffer')))
  const entries = await database.db`select * from audit_log where target_id = ${session.id}`
  assert.equal(entries.length, 1)
  for (const shown of [row, entries, await listSessions(admin)])
    assert.ok(!JSON.stringify(shown).includes(secret.slice(8, 40)))
})

test('unknown, malformed, revoked and expired sessions are told apart, with the way to another', async () => {
  await assert.rejects(verify(mintSecret('wls_')), says(/not known/))
  await assert.rejects(verify(`${mintSecret('wls_')}x`), says(/no session of Windlass/))
  const revoked = await aSession()
  await revokeSession(admin, revoked.session.id)
  await assert.rejects(verify(revoked.secret), says(/revoked; .*windlass admin sessions create/))
  const expired = await aSession()
  await database.db`update operator_sessions set expires_at = now() where id = ${expired.session.id}`
  await assert.rejects(verify(expired.secret), says(/expired; .*windlass admin sessions create/))
})

test('what is no kind of credential is told which kinds there are', async () => {
  for (const token of ['nonsense', 'a.b.c', mintSecret('wlr_'), 'WL_', ''])
    await assert.rejects(verify(token), says(/`wl_`, a session with `wls_`/))
})

test('a session lives for 30 days at most', async () => {
  const ask = { org: 'acme', name: 'work', role: 'admin' } as const
  for (const lifeMs of [0, -1, Number.NaN, 30 * 24 * HOUR_MS + 1])
    await assert.rejects(createSession(admin, { ...ask, lifeMs }), refusal('VALIDATION_FAILED', 'for'))
  const { session } = await createSession(admin, { ...ask, lifeMs: 30 * 24 * HOUR_MS })
  assert.ok(session.expiresAt - session.createdAt === 30 * 24 * HOUR_MS)
})

test('a key or session is revoked once, by its id or by itself, in the audit log of its own org', async () => {
  const { apiKey, key } = await createKey(admin, { org: 'acme', name: 'ci', role: 'owner' })
  const revoked = await Promise.all([apiKey.id, key, key, apiKey.id].map((name) => revokeKey(admin, name)))
  assert.equal(revoked.filter((one) => one.isNew).length, 1)
  const { session, secret } = await aSession()
  const ended = await Promise.all([session.id, secret, secret].map((name) => revokeSession(admin, name)))
  assert.equal(ended.filter((one) => one.isNew).length, 1)
  const entries = await database.db`
    select action, orgs.slug from audit_log join orgs on orgs.id = audit_log.org_id
    where target_id in (${apiKey.id}, ${session.id}) and action like '%revoke' order by action`
  assert.deepEqual(
    [...entries],
    [
      { action: 'keys.revoke', slug: 'acme' },
      { action: 'sessions.revoke', slug: 'acme' },
    ],
  )
})

test('what is not there is told by name', async () => {
  await assert.rejects(createKey(admin, { org: 'nobody', name: 'ci', role: 'owner' }), refusal('NOT_FOUND'))
  await assert.rejects(listKeys(admin, 'nobody'), /no org `nobody`/)
  await assert.rejects(listSessions(admin, 'nobody'), /no org `nobody`/)
  for (const name of [newId('key'), mintSecret('wl_'), ''])
    await assert.rejects(revokeKey(admin, name), refusal('NOT_FOUND'))
  for (const name of [newId('ses'), mintSecret('wls_'), ''])
    await assert.rejects(revokeSession(admin, name), refusal('NOT_FOUND'))
})

test('all keys of an org are listed, also those over one page of the database', async () => {
  const { id } = await createOrg(admin, { slug: 'many', name: 'Many' })
  await database.db`
    insert into api_keys (id, org_id, hash, prefix, name, role)
    select 'key_' || lpad(n::text, 26, '0'), ${id}, int4send(n), 'wl_x', 'n' || n, 'viewer' from generate_series(1, 1001) n`
  const keys = await listKeys(admin, 'many')
  assert.deepEqual([keys.length, keys[0]?.name, keys.at(-1)?.name], [1001, 'n1001', 'n1'])
})
