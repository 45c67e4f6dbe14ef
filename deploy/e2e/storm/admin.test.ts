// What the operator of an instance does on its host, and what `npm start` leaves there for it.
import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { testDatabase } from '@windlass/coordinator/test/_kit/database.ts'
import { openDatabase } from '@windlass/coordinator/db/client.ts'
import { createLog } from '@windlass/shared/log.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Instance, makeHome, startInstance } from '../_kit/instance.ts'
import { watchCli } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const START = { WINDLASS_START_EXAMPLE: 'false' }
const DAY_MS = 86_400_000
const FOR_90_DAYS = ['--expires', '90d']
const log = createLog({}, 'error')

const temp = makeHome()
const { home } = temp
let instance: Instance

before(async () => {
  instance = await startInstance({ home, env: START })
})
after(() => temp.remove())

interface AdminAnswer {
  code: number | string
  stdout: string
  stderr: string
}

async function admin(args: string[], env: Record<string, string> = { WINDLASS_HOME: home }): Promise<AdminAnswer> {
  const cli = watchCli(['admin', ...args], { env })
  return { code: await cli.ended(), stdout: cli.stdout(), stderr: cli.stderr() }
}

async function done(args: string[]): Promise<AdminAnswer> {
  const answer = await admin(args)
  assert.equal(answer.code, 0, answer.stderr)
  return answer
}

const linesOf = (text: string) => text.trimEnd().split('\n')
const jsonOf = ({ stdout }: AdminAnswer): unknown => JSON.parse(stdout)
const fileOf = (name: string) => JSON.parse(readFileSync(join(home, name), 'utf8')) as Record<string, string>
const at = (apiKey: string) => ({ url: instance.access.url, apiKey })

async function inDatabase<T>(work: (database: ReturnType<typeof openDatabase>) => Promise<T>): Promise<T> {
  const database = openDatabase({ url: fileOf('admin.json')['databaseUrl'] ?? '', max: 1, log })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

test('npm start leaves a session and the address of the database, for its own user only', async () => {
  const { session = '', apiKey } = fileOf('cli.json')
  assert.equal(apiKey, instance.access.apiKey)
  assert.ok(!instance.process.stdout().includes(session) && !instance.process.stderr().includes(session))
  for (const name of ['cli.json', 'admin.json']) assert.equal(statSync(join(home, name)).mode & 0o777, 0o600)
  const { me } = await callOp(at(session), ops.account.get, {})
  assert.deepEqual([me.credential.kind, me.credential.role, me.org.slug], ['session', 'owner', 'default'])
})

test('an org and a key of it, made on the host, work over the API at once, and no further than was said', async () => {
  const org = await done(['orgs', 'create', 'acme', '--name', 'Acme Inc.'])
  assert.match(org.stderr, /Made the org acme.*\nNext: windlass admin keys create --org acme/)
  const scopes = ['--scope', 'run:read,run:trigger', '--scope', 'workflow:read']
  const made = await done([
    'keys',
    'create',
    '--org',
    'acme',
    '--name',
    'ci',
    '--role',
    'admin',
    ...scopes,
    ...FOR_90_DAYS,
  ])
  const [key = '', ...more] = linesOf(made.stdout)
  assert.deepEqual(more, [], 'the key is not alone on stdout')
  const { me } = await callOp(at(key), ops.account.get, {})
  assert.deepEqual([me.org.slug, me.credential.role], ['acme', 'admin'])
  assert.deepEqual(me.credential.scopes, ['run:read', 'run:trigger', 'workflow:read'])
  assert.deepEqual((await callOp(at(key), ops.runs.list, { org: 'acme' })).runs, [])
  await assert.rejects(callOp(at(key), ops.audit.list, { org: 'acme' }), { code: 'FORBIDDEN' })
  await assert.rejects(callOp(at(key), ops.runs.list, { org: 'default' }), { code: 'NOT_FOUND' })

  const { apiKeys } = jsonOf(await done(['keys', 'list', '--org', 'acme', '--json'])) as {
    apiKeys: { id: string; expiresAt: number }[]
  }
  assert.equal(apiKeys.length, 1)
  assert.ok(Math.abs((apiKeys[0]?.expiresAt ?? 0) - Date.now() - 90 * DAY_MS) < DAY_MS)
  assert.match((await done(['keys', 'revoke', apiKeys[0]?.id ?? ''])).stderr, /Revoked the API key ci/)
  const isRefused = () =>
    callOp(at(key), ops.account.get, {}).then(
      () => false,
      (error: { code?: string }) => error.code === 'UNAUTHENTICATED',
    )
  await until('the end of the key', isRefused)
  assert.match((await done(['keys', 'revoke', key])).stderr, /was revoked before/)
})

test('a session made on the host mints a key over the API, until it is revoked', async () => {
  const { secret, session } = jsonOf(
    await done(['sessions', 'create', '--org', 'acme', '--role', 'admin', '--name', 'deploying', '--json']),
  ) as { secret: string; session: { id: string; expiresAt: number } }
  assert.ok(Math.abs(session.expiresAt - Date.now() - DAY_MS / 2) < 60_000, 'it does not serve for 12 hours')
  const ask = { org: 'acme', name: 'minted', role: 'member' } as const
  assert.equal((await callOp(at(secret), ops.keys.create, ask)).apiKey.createdBy, session.id)
  assert.match((await done(['sessions', 'list', '--org', 'acme'])).stdout, /deploying\tadmin\tserves until/)
  await done(['sessions', 'revoke', session.id])
  const isRefused = () =>
    callOp(at(secret), ops.account.get, {}).then(
      () => false,
      (error: { code?: string }) => error.code === 'UNAUTHENTICATED',
    )
  await until('the end of the session', isRefused)
  assert.match((await done(['sessions', 'list'])).stdout, /deploying\tadmin\trevoked/)
})

test('all of it is in the audit log, under the name of whoever typed it', async () => {
  const { key } = jsonOf(
    await done(['keys', 'create', '--org', 'acme', '--name', 'reader', '--role', 'admin', '--json']),
  ) as { key: string }
  const { auditEntries: entries } = await callOp(at(key), ops.audit.list, { org: 'acme' })
  assert.deepEqual(
    entries.filter((entry) => entry.via === 'admin').map((entry) => entry.action),
    ['keys.create', 'sessions.revoke', 'sessions.create', 'keys.revoke', 'keys.create', 'orgs.create'],
  )
  for (const { actor } of entries.filter((entry) => entry.via === 'admin')) {
    assert.equal(actor.kind, 'operator')
    assert.match(actor.id, /^\S+@\S+$/)
  }
})

for (const [args, code, refusal] of [
  [['keys', 'create', '--org', 'acme', '--name', 'x'], 2, /`--role` is missing.\nNext: windlass admin keys create/],
  [['keys', 'create', '--org', 'acme', '--name', 'x', '--role', 'ower'], 2, /no role, did you mean `owner`/],
  [['keys', 'create', '--org', 'acme', '--name', 'x', '--role', 'owner', '--scope', 'run:raed'], 2, /`run:read`/],
  [['keys', 'create', '--org', 'acme', '--name', 'x', '--role', 'owner', '--expires', 'soon'], 2, /1s to 36500d/],
  [['keys', 'create', '--org', 'nobody', '--name', 'x', '--role', 'owner'], 4, /no org `nobody`.\nNext: .*orgs list/],
  [['keys', 'create', '--org', 'acme', '--name', 'a\u001b[2Jb', '--role', 'owner'], 2, /`name` must have 1 to 100/],
  [['keys', 'revoke', 'key_nothing'], 4, /no such API key.\nNext: windlass admin keys list/],
  [['sessions', 'create', '--org', 'acme', '--role', 'owner', '--for', '31d'], 2, /1s to 30d/],
  [['orgs', 'create', 'acme'], 1, /an org `acme` already.*\nNext: windlass admin orgs list/],
  [['orgs', 'create', 'Bad_Slug'], 2, /lower-case letters.*\nNext: windlass admin orgs create/],
  [['orgs', 'list', '--database-url', 'http://here'], 2, /must begin with `postgres:\/\/`/],
  [
    ['orgs', 'list', '--database-url', 'postgres://nobody:hunter2@127.0.0.1:1/x'],
    5,
    /ECONNREFUSED.*\nNext: .*npm start/,
  ],
] as const) {
  test(`admin ${args.join(' ').replace('\u001b', 'ESC')} ends with ${code} and says what to type`, async () => {
    const ended = await admin([...args])
    assert.equal(ended.code, code, ended.stderr)
    assert.match(ended.stderr, refusal)
    assert.doesNotMatch(ended.stderr, /hunter2/)
    assert.equal(ended.stdout, '')
  })
}

test('without a database that could be meant, the ways to name one are told', async () => {
  const { code, stderr } = await admin(['orgs', 'list'], { WINDLASS_HOME: join(home, 'nowhere') })
  assert.equal(code, 2)
  assert.match(stderr, /No database is named.*\nNext: .*--database-url, or WINDLASS_DATABASE_URL/)
})

test('a database of another Windlass, or of none, is not touched', async () => {
  const database = await testDatabase()
  const { url, db } = database
  try {
    const refusal = async () => (await admin(['orgs', 'create', 'acme'], { WINDLASS_DATABASE_URL: url })).stderr
    const [last] =
      await db`delete from windlass_migrations where number = (select max(number) from windlass_migrations) returning *`
    assert.match(
      await refusal(),
      /not migrated to this Windlass: it has \d+ of \d+ migrations.\nNext: `windlass admin migrate`/,
    )
    await db`insert into windlass_migrations ${db([{ ...last, checksum: 'another' }])}`
    assert.match(await refusal(), /migrated by another Windlass/)
    await db`insert into windlass_migrations ${db([{ ...last, number: 1000 }])}`
    assert.match(
      await refusal(),
      /newer than this .*: it has the migration 1000-[^ ]+, and .* up to 0[^ ]+\.\nNext: install .*service health/,
    )
    assert.equal((await db`select 1 from orgs where slug = 'acme'`).length, 0)
    await db`drop table windlass_migrations`
    assert.match(await refusal(), /holds no Windlass yet/)
  } finally {
    await database.close()
  }
})

test('a database that is up to date needs no migration', async () => {
  const { code, stderr, stdout } = await admin(['migrate'])
  assert.deepEqual([code, stdout], [0, ''])
  assert.match(stderr, /was up to date/)
})

test('a second start keeps the session; one that soon ends is replaced and revoked', async () => {
  const { session } = fileOf('cli.json')
  await instance.stop()
  const stopped = await admin(['orgs', 'list'])
  assert.equal(stopped.code, 5, stopped.stderr)
  assert.match(stopped.stderr, /\nNext: .*npm start/)

  instance = await startInstance({ home, env: START })
  assert.equal(fileOf('cli.json')['session'], session)
  await inDatabase(
    ({ db }) => db`update operator_sessions set expires_at = now() + interval '6 days' where name = 'local'`,
  )
  await instance.stop()

  instance = await startInstance({ home, env: START })
  const renewed = fileOf('cli.json')['session'] ?? ''
  assert.notEqual(renewed, session)
  const { me } = await callOp(at(renewed), ops.account.get, {})
  assert.equal(me.credential.kind, 'session')
  await assert.rejects(callOp(at(session ?? ''), ops.account.get, {}), { code: 'UNAUTHENTICATED' })
  await instance.stop()
})
