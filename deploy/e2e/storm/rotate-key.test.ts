// The keys of secrets, turned under a running instance by whoever keeps it.
import assert from 'node:assert/strict'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Db, openDatabase } from '@windlass/coordinator/db/client.ts'
import { createLog } from '@windlass/shared/log.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Instance, makeHome, startInstance } from '../_kit/instance.ts'
import { watchCli } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const temp = makeHome()
const { home } = temp
const KEY_FILE = join(home, 'secret.key')
let instance: Instance
let database: ReturnType<typeof openDatabase>
let db: Db
let session: string

before(async () => {
  instance = await startInstance({ home, env: { WINDLASS_START_EXAMPLE: 'false' } })
  const fileOf = (name: string) => JSON.parse(readFileSync(join(home, name), 'utf8')) as Record<string, string>
  session = fileOf('cli.json')['session']!
  database = openDatabase({ url: fileOf('admin.json')['databaseUrl']!, max: 2, log: createLog({}, 'error') })
  db = database.db
})
after(async () => {
  await database?.close()
  await instance?.stop()
  temp.remove()
})

const rotation = (args: readonly string[] = [], env: Record<string, string> = {}) =>
  watchCli(['admin', 'secrets', 'rotate-key', ...args], { env: { WINDLASS_HOME: home, ...env } })

async function rotate(args: readonly string[] = [], env: Record<string, string> = {}) {
  const cli = rotation(args, env)
  return { code: await cli.ended(), stdout: cli.stdout(), stderr: cli.stderr() }
}

const set = (name: string, environment?: string) =>
  callOp({ url: instance.access.url, apiKey: session }, ops.secrets.set, {
    org: 'default',
    name,
    value: `value of ${name}`,
    environment,
  })
const fingerprints = async () =>
  (
    await db<
      { key: string }[]
    >`select distinct split_part(sealed, '.', 2) as key from variables where sealed is not null`
  )
    .map(({ key }) => key)
    .sort()
const keysInFile = () =>
  readFileSync(KEY_FILE, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#')).length

test('the first start makes a key for its own user only, and secrets can be set at once', async () => {
  assert.equal(statSync(KEY_FILE).mode & 0o777, 0o600)
  await set('FIRST')
  assert.equal((await fingerprints()).length, 1)
})

test('a key is turned while the coordinator runs, which goes on with the new one', async () => {
  const [old] = await fingerprints()
  const turned = await rotate()
  assert.equal(turned.code, 0, turned.stderr)
  const [fresh] = await fingerprints()
  assert.notEqual(fresh, old)
  assert.equal(turned.stdout, `${fresh}\n`)
  assert.match(turned.stderr, /Made the key \w+ and sealed 1 secret with it.*\n.*any more; .*--retire/s)
  await set('SECOND')
  assert.deepEqual(await fingerprints(), [fresh])
  const retired = await rotate(['--retire'])
  assert.deepEqual([retired.code, retired.stdout, keysInFile()], [0, `${old}\n`, 1], retired.stderr)
  await set('THIRD')
  assert.deepEqual(await fingerprints(), [fresh])
})

test('killed in its middle, again and again, while secrets are set, it loses none', async () => {
  for (const name of ['e', 'f'])
    await callOp({ url: instance.access.url, apiKey: session }, ops.environments.create, { org: 'default', name })
  for (let i = 0; i < 300; i++) await set(`S${i}`, i % 2 ? 'e' : 'f')
  // A lock on one of the last rows holds the rotation in its middle.
  for (let round = 0; round < 3; round++) {
    let killed: ReturnType<typeof rotation> | undefined
    await db.begin(async (tx) => {
      await tx`select from variables where name = 'S98' for update`
      killed = rotation()
      await until('the rotation to wait', async () => {
        const [row] =
          await db`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%split_part%'`
        return row !== undefined
      })
      killed.child.kill('SIGKILL')
      await killed.ended()
    })
    assert.deepEqual([keysInFile(), (await fingerprints()).length], [2, 2], 'it was not in its middle')
    await set(`DURING${round}`)
  }
  const ended = await rotate(['--json'])
  assert.equal(ended.code, 0, ended.stderr)
  const { isNewKey, broken, missing } = JSON.parse(ended.stdout) as Record<string, unknown>
  assert.deepEqual([isNewKey, broken, missing, (await fingerprints()).length], [false, [], [], 1])
  assert.equal((await rotate(['--retire'])).code, 0)
  const [row] = await db<{ count: number }[]>`select count(*)::int as count from variables where sealed is not null`
  assert.deepEqual([row?.count, keysInFile()], [306, 1])
})

test('what is wrong with the keys is said, with what to type', async () => {
  const none = await rotate(['--database-url', 'postgres://x@127.0.0.1:1/x'])
  assert.equal(none.code, 2)
  assert.match(none.stderr, /No keys are named.*\nNext: windlass admin secrets rotate-key --key-file/)
  chmodSync(KEY_FILE, 0o644)
  const open = await rotate()
  chmodSync(KEY_FILE, 0o600)
  assert.notEqual(open.code, 0)
  assert.match(open.stderr, /`chmod 600` it/)
  const given = await rotate([], { WINDLASS_SECRET_KEY: 'nonsense' })
  assert.equal(given.code, 2)
  assert.match(given.stderr, /no key of 32 bytes/)
  assert.doesNotMatch(given.stderr, /nonsense/)
})
