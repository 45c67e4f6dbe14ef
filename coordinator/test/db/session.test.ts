import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isConnectionLoss, openDatabase, openPgPool } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'

const database = await testDatabase()
after(() => database.close())
const { db } = database

test('a session has its settings, whatever those of the database are', async (t) => {
  const name = new URL(database.url).pathname.slice(1)
  const others = [
    `DateStyle = 'SQL, DMY'`,
    `bytea_output = 'escape'`,
    'extra_float_digits = 0',
    `default_transaction_isolation = 'serializable'`,
    'statement_timeout = 60000',
    'jit = on',
  ]
  for (const other of others) await db.unsafe(`alter database "${name}" set ${other}`)
  const later = openDatabase({ url: database.url, max: 1, log })
  const jobs = openPgPool(database.url, { max: 1, log })
  t.after(async () => {
    await later.close()
    await jobs.end()
    await db.unsafe(`alter database "${name}" reset all`)
  })
  const at = new Date(Date.UTC(2026, 11, 1, 12, 30, 15, 123))
  const [row] = await later.db`
    select ${at}::timestamptz as at, '\\x00ff'::bytea as bytes, 0.1::float8 + 0.2::float8 as sum,
           current_setting('jit') as jit, current_setting('transaction_isolation') as isolation,
           current_setting('statement_timeout') as timeout`
  const bytes = Buffer.from([0, 255])
  assert.deepEqual({ ...row }, { at, bytes, sum: 0.1 + 0.2, jit: 'off', isolation: 'read committed', timeout: '30s' })
  const ofJobs = await jobs.query<object>(
    `select $1::timestamptz as at, current_setting('transaction_isolation') as isolation`,
    [at],
  )
  assert.deepEqual(ofJobs.rows, [{ at, isolation: 'read committed' }])
})

test('a session that listens has them too, and the address may say how long a statement takes', async (t) => {
  const url = new URL(database.url)
  url.searchParams.set('statement_timeout', '7000')
  url.searchParams.set('fetch_types', 'false')
  const own = openDatabase({ url: url.href, max: 1, log })
  t.after(() => own.close())
  await own.db.listen('anything', () => {})
  const [row] = await own.db`
    select current_setting('statement_timeout') as statement, current_setting('transaction_timeout') as transaction`
  assert.deepEqual({ ...row }, { statement: '7s', transaction: '14s' })
  await db.unsafe(`alter database "${url.pathname.slice(1)}" set idle_session_timeout = 100`)
  t.after(() => db.unsafe(`alter database "${url.pathname.slice(1)}" reset all`))
  const idle = openDatabase({ url: database.url, max: 1, log })
  t.after(() => idle.close())
  let begun = 0
  await idle.db.listen(
    'anything',
    () => {},
    () => void begun++,
  )
  await delay(500)
  assert.equal(begun, 1)
})

test('settings are no start parameters, which poolers refuse', async (t) => {
  const started = Promise.withResolvers<string[]>()
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('data', (bytes) => {
      started.resolve(bytes.toString('utf8', 8).split('\0'))
      socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const refused = openDatabase({ url: `postgres://somebody@127.0.0.1:${port}/any`, max: 1, log })
  t.after(() => refused.close())
  await assert.rejects(refused.db`select 1`, isConnectionLoss)
  const texts = await started.promise
  const names = texts.slice(0, texts.indexOf('')).filter((_, at) => at % 2 === 0)
  assert.deepEqual(names, ['user', 'database', 'client_encoding', 'application_name'])
})
