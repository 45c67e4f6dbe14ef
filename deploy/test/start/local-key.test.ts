import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { createCallers } from '@windlass/coordinator/accounts/callers.ts'
import type { Database } from '@windlass/coordinator/db/client.ts'
import { testDatabase } from '@windlass/coordinator/test/_kit/database.ts'
import { createLog } from '@windlass/shared/log.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { keepCredentials, type LocalAccess, localCredentials, ORG, writeAccess } from '../../start/local-key.ts'

const log = createLog({}, 'error')
let database: Database
let home: string

before(async () => {
  database = await testDatabase()
})
after(() => database.close())
beforeEach(async (t) => {
  home = await mkdtemp(join(tmpdir(), 'windlass-local-key-'))
  if ('after' in t) t.after(() => rm(home, { recursive: true, force: true }))
})

const credentials = () => localCredentials(database.url, home)
const verify = (token: string) => createCallers({ db: database.db, log }).verify(token)
const leaveDays = (days: number) =>
  database.db`update operator_sessions set expires_at = now() + ${days} * interval '1 day' where revoked_at is null`

async function started(): Promise<LocalAccess> {
  const access = { url: 'http://127.0.0.1:1', org: ORG, ...(await credentials()) }
  await writeAccess(home, access)
  return access
}

test('a start finds key and session of the one before, and makes new ones where the database knows them not', async () => {
  const first = await started()
  assert.deepEqual([(await verify(first.apiKey)).kind, (await verify(first.session)).kind], ['key', 'session'])
  assert.deepEqual(await credentials(), { apiKey: first.apiKey, session: first.session })
  await database.db`update api_keys set revoked_at = now()`
  await database.db`update operator_sessions set revoked_at = now()`
  const next = await credentials()
  assert.notEqual(next.apiKey, first.apiKey)
  assert.notEqual(next.session, first.session)
})

test('a home of before there were sessions keeps its key and gets one', async () => {
  const { apiKey } = await started()
  await writeFile(join(home, 'cli.json'), JSON.stringify({ url: 'http://127.0.0.1:1', org: ORG, apiKey }))
  const next = await credentials()
  assert.equal(next.apiKey, apiKey)
  assert.equal((await verify(next.session)).role, 'owner')
})

test('a session with a week left is kept, one with less is replaced and revoked, and both are in the audit log', async () => {
  const { session } = await started()
  await leaveDays(7.1)
  assert.equal((await credentials()).session, session)
  await leaveDays(6.9)
  assert.notEqual((await credentials()).session, session)
  await assert.rejects(verify(session), /revoked/)
  const entries = await database.db`
    select action, actor_kind from audit_log where action like 'sessions.%' order by id desc limit 2`
  assert.deepEqual(
    [...entries],
    [
      { action: 'sessions.revoke', actorKind: 'system' },
      { action: 'sessions.create', actorKind: 'system' },
    ],
  )
})

test('while the instance runs its session is renewed in time', async () => {
  const access = await started()
  await leaveDays(1)
  const stop = new AbortController()
  const keeping = keepCredentials(access, {
    databaseUrl: database.url,
    home,
    stop: stop.signal,
    everyMs: 20,
    fail: assert.fail,
  })
  const savedAccess = async () => JSON.parse(await readFile(join(home, 'cli.json'), 'utf8')) as LocalAccess
  await untilPolled('another session', async () => (await savedAccess()).session !== access.session)
  stop.abort()
  await keeping
  const now = await savedAccess()
  assert.deepEqual([now.url, now.org, now.apiKey], [access.url, access.org, access.apiKey])
  assert.equal((await verify(now.session)).kind, 'session')
})
