import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createCallers } from '../../accounts/callers.ts'
import type { Database } from '../../db/client.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'

const log = createLog({}, 'error')
const orgId = newId('org')
let database: Database

before(async () => {
  database = await testDatabase()
  await database.db`insert into orgs (id, slug, name) values (${orgId}, 'acme', 'Acme')`
})
after(() => database.close())

function mint() {
  return mintApiKey(database.db, { orgId, name: 'ci', role: 'member', scopes: ['run:read'] })
}

const refusal = (message: RegExp) => (error: Error & { code?: string }) =>
  error.code === 'UNAUTHENTICATED' && message.test(error.message)

test('a minted key leads to its org, role and scopes', async () => {
  const { id, key } = await mint()
  const caller = await createCallers({ db: database.db, log }).verify(key)
  assert.deepEqual(caller, { kind: 'key', id, name: 'ci', orgId, org: 'acme', role: 'member', scopes: ['run:read'] })
})

test('only the hash and the first ten characters are stored', async () => {
  const { id, key } = await mint()
  const [row] = await database.db`select * from api_keys where id = ${id}`
  assert.ok(Buffer.from(row!.hash as Uint8Array).equals(hash('sha256', key, 'buffer')))
  assert.equal(row!.prefix, key.slice(0, 10))
  assert.doesNotMatch(JSON.stringify(row), new RegExp(key.slice(10)))
})

test('unknown, malformed, revoked and expired keys are told apart', async () => {
  const { verify } = createCallers({ db: database.db, log })
  await assert.rejects(verify(mintSecret('wl_')), refusal(/not known/))
  for (const token of ['', 'wl_', mintSecret('wlr_'), `${mintSecret('wl_')}x`])
    await assert.rejects(verify(token), refusal(/no API key|no credential/))
  const revoked = await mint()
  await database.db`update api_keys set revoked_at = now() where id = ${revoked.id}`
  await assert.rejects(verify(revoked.key), refusal(/revoked/))
  const expired = await mint()
  await database.db`update api_keys set expires_at = now() where id = ${expired.id}`
  await assert.rejects(verify(expired.key), refusal(/expired/))
})

test('a malformed key costs no statement', async () => {
  const { verify } = createCallers({ db: (() => assert.fail('asked the database')) as never, log })
  await assert.rejects(verify(`${mintSecret('wl_').slice(0, -1)}!`), refusal(/no API key/))
})

test('a thousand requests at once ask the database once, and a refusal is asked again', async () => {
  const { key } = await mint()
  let statements = 0
  const counting = new Proxy(database.db, {
    apply: (target, self, args: unknown[]) => {
      statements++
      return Reflect.apply(target as (...all: unknown[]) => unknown, self, args)
    },
  })
  const { verify } = createCallers({ db: counting, log })
  await Promise.all(Array.from({ length: 1000 }, () => verify(key)))
  // The look-up, and the note that the key was used.
  assert.ok(statements <= 2, `${statements} statements`)
  statements = 0
  const stranger = mintSecret('wl_')
  await assert.rejects(verify(stranger))
  await assert.rejects(verify(stranger))
  assert.equal(statements, 2)
})

test('use is noted, at most once a minute', async () => {
  const { id, key } = await mint()
  const usedAt = async () =>
    (await database.db`select last_used_at from api_keys where id = ${id}`)[0]!.lastUsedAt as Date | null
  assert.equal(await usedAt(), null)
  await createCallers({ db: database.db, log }).verify(key)
  await untilPolled('the use to be noted', usedAt)
  const first = await usedAt()
  await createCallers({ db: database.db, log }).verify(key)
  assert.deepEqual(await usedAt(), first)
})

test('a key that is revoked is out within its second', async () => {
  const { id, key } = await mint()
  let now = 0
  const { verify } = createCallers({ db: database.db, log, now: () => now })
  await verify(key)
  await database.db`update api_keys set revoked_at = now() where id = ${id}`
  now = 999
  assert.equal((await verify(key)).id, id)
  now = 1000
  await assert.rejects(verify(key), refusal(/revoked/))
})
