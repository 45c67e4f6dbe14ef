import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isConnectionLoss, isDeadlock, openDatabase, openPgPool } from '../../db/client.ts'
import type { Database, Db } from '../../db/client.ts'
import { waitUntil } from '../../db/embedded-process.ts'
import { testDatabase } from '../_kit/database.ts'
import { aHome, log, start } from '../_kit/embedded-home.ts'

const database = await testDatabase()
after(() => database.close())
const { db } = database
// For the tests that kill the server: each starts it again on the same data.
const home = await aHome()

test('columns are camelCase here and snake_case there, and keys inside json stay as they are', async () => {
  await db`create table things (thing_name text, more_facts jsonb)`
  await db`insert into things ${db({ thingName: 'a', moreFacts: db.json({ user_key: 1, userKey: 2 }) })}`
  const rows = await db`select thing_name, more_facts, ${'x'}::text as my_text from things`
  assert.deepEqual([...rows], [{ thingName: 'a', moreFacts: { user_key: 1, userKey: 2 }, myText: 'x' }])
})

test('bigint and count(*) come as strings, so that no digit is lost', async () => {
  const [row] = await db`select 9007199254740993::bigint as big, count(*) as n, count(*)::int as small`
  assert.deepEqual({ ...row }, { big: '9007199254740993', n: '1', small: 1 })
})

test('arrays go there and back, which unnest needs', async () => {
  const rows = await db`select * from unnest(${['a', 'b,"c']}::text[], ${[1, 2]}::int[]) as t (name, number)`
  assert.deepEqual(
    [...rows],
    [
      { name: 'a', number: 1 },
      { name: 'b,"c', number: 2 },
    ],
  )
})

test('a session that hangs inside a transaction is ended before those give up who wait for its locks', async () => {
  const [times] = await db<[{ idle: number; lock: number }]>`
    select extract(epoch from current_setting('idle_in_transaction_session_timeout')::interval)::float8 as idle,
           extract(epoch from current_setting('lock_timeout')::interval)::float8 as lock`
  assert.ok(times.idle > 0 && times.idle < times.lock, JSON.stringify(times))
})

test('a transaction lasts no longer than two statements may, so that one whose client stands still ends', async (t) => {
  const hasty = openDatabase({ url: database.url, max: 1, log, statementTimeoutMs: 1000 })
  t.after(() => hasty.close())
  const settingsOf = async (of: Db) => {
    const [row] = await of<[{ transaction: string; keepalives: string[]; isTcp: boolean }]>`
      select current_setting('transaction_timeout') as transaction, inet_client_addr() is not null as is_tcp,
             array[current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
                   current_setting('tcp_keepalives_count')] as keepalives`
    // Over a unix socket they read as zero.
    assert.deepEqual(row.keepalives, row.isTcp ? ['5', '2', '3'] : ['0', '0', '0'])
    return row.transaction
  }
  assert.equal(await settingsOf(db), '1min')
  assert.equal(await settingsOf(hasty.db), '2s')
  const endless = openDatabase({ url: database.url, max: 1, log, statementTimeoutMs: 0 })
  t.after(() => endless.close())
  assert.equal(await settingsOf(endless.db), '0')
  // A transaction that is never idle for long, nor has a statement that takes long.
  const begun = hasty.db.begin(async (tx) => {
    for (;;) await tx`select pg_sleep(0.1)`
  })
  await assert.rejects(begun, isConnectionLoss)
  assert.equal(await settingsOf(hasty.db), '2s', 'so it is on the next connection')
})

test('a statement that takes too long is refused, and that is no lost connection', async (t) => {
  const hasty = openDatabase({ url: database.url, log, statementTimeoutMs: 50 })
  t.after(() => hasty.close())
  await assert.rejects(hasty.db`select pg_sleep(5)`, (error) => !isConnectionLoss(error) && !isDeadlock(error))
})

test('of two transactions that wait for each other one hears of a deadlock', async () => {
  await db`create table pairs as select n from generate_series(1, 2) n`
  let met = 0
  const cross = (first: number, second: number) =>
    db.begin(async (tx) => {
      await tx`update pairs set n = n where n = ${first}`
      met++
      await waitUntil(() => Promise.resolve(met === 2), 5_000, 'the other transaction')
      await tx`update pairs set n = n where n = ${second}`
    })
  const both = await Promise.allSettled([cross(1, 2), cross(2, 1)])
  const [loser, ...others] = both.filter((each) => each.status === 'rejected')
  assert.equal(others.length, 0)
  assert.ok(isDeadlock(loser?.reason))
  assert.ok(!isConnectionLoss(loser?.reason))
})

test('refused statements, bad messages and plain errors are not taken for a lost server', async () => {
  await assert.rejects(db`select 1 / 0`, (error) => !isConnectionLoss(error))
  await assert.rejects(db`select from nowhere`, (error) => !isConnectionLoss(error))
  assert.equal(isConnectionLoss(Object.assign(new Error('protocol'), { code: '08P01' })), false)
  assert.equal(isConnectionLoss(new Error('boom')), false)
  // Of a pooler that lets nobody in, the same code is a loss.
  const refused = Object.assign(new Error('server login has been failing'), { code: '08P01', severity: 'FATAL' })
  assert.equal(isConnectionLoss(refused), true)
  assert.equal(isConnectionLoss('ECONNREFUSED'), false)
  assert.equal(
    isConnectionLoss(new Error('outer', { cause: Object.assign(new Error('gone'), { code: '57P01' }) })),
    true,
  )
})

test('a session that is ended inside a transaction takes only that transaction along', async () => {
  await db`create table notes (note text)`
  const work = db.begin(async (tx) => {
    await tx`insert into notes values ('lost')`
    const [session] = await tx`select pg_backend_pid() as pid`
    await db`select pg_terminate_backend(${session?.pid as number})`
    await tx`insert into notes values ('late')`
  })
  await assert.rejects(work, isConnectionLoss)
  assert.equal((await db`select * from notes`).length, 0)
})

test('kill -9 of the server: all that is under way or comes meanwhile is told so, then the pools find the new one', async (t) => {
  const first = await start(t, home)
  const survivor = openDatabase({ url: first.url, max: 3, log })
  t.after(() => survivor.close())
  const { db } = survivor
  await db`create table notes (note text)`
  let go = () => {}
  const gate = new Promise<void>((open) => (go = open))

  const idle = db.begin(async (tx) => {
    await tx`insert into notes values ('idle')`
    await gate
    await tx`insert into notes values ('outside of its transaction')`
  })
  const inFlight = db.begin(async (tx) => {
    await tx`insert into notes values ('in flight')`
    await tx.savepoint((sp) => sp`select pg_sleep(60)`)
  })
  const stubborn = db.begin(async (tx) => {
    await tx`insert into notes values ('stubborn')`
    // Goes on in spite of each refusal: none of it may reach a later connection.
    for (let tries = 0; tries < 5; tries++) await tx`select pg_sleep(60)`.catch(() => tries)
    await tx`insert into notes values ('stubborn still')`
  })
  await allAsleep(first.url, 2)
  const queued = Array.from({ length: 20 }, () => db`insert into notes values ('queued')`.execute())
  const outcomes = Promise.allSettled([inFlight, stubborn, idle, ...queued])
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  const meanwhile = await Promise.allSettled(Array.from({ length: 20 }, () => db`select 1`.execute()))

  for (const each of meanwhile) assert.ok(each.status === 'rejected' && isConnectionLoss(each.reason))
  const second = await start(t, home)
  await waitUntil(() => works({ db }), 5_000, 'the pool to find the new server')
  await Promise.all(Array.from({ length: 6 }, () => db`select 1`))
  go()
  for (const each of await outcomes) assert.ok(each.status === 'rejected' && isConnectionLoss(each.reason))
  assert.deepEqual([...(await db`select * from notes`)], [])
  assert.equal(second.url, first.url)
})

test('a listener hears again after the server was away for a while', async (t) => {
  const first = await start(t, home)
  const survivor = openDatabase({ url: first.url, max: 2, log })
  t.after(() => survivor.close())
  const { db } = survivor
  const heard: string[] = []
  let listens = 0
  await db.listen(
    'bell',
    (payload) => heard.push(payload),
    () => listens++,
  )
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  // So long that several attempts to listen again have failed.
  for (let fails = 0; fails < 5; fails++) await assert.rejects(db`select 1`, isConnectionLoss)
  await start(t, home)
  await waitUntil(() => Promise.resolve(listens === 2), 5_000, 'the listener to come back')
  await db.notify('bell', 'again')
  await waitUntil(() => Promise.resolve(heard.length > 0), 5_000, 'the bell')
  assert.deepEqual(heard, ['again'])
})

test('the pg pool uses the same url, survives a killed server and serves the next one', async (t) => {
  const first = await start(t, home)
  const pool = openPgPool(first.url, { max: 2, log: Object.assign(() => {}, { debug() {}, warn() {}, error() {} }) })
  t.after(() => pool.end())
  const lent = await pool.connect()
  await pool.query('select 1')
  // Not `once` of node:events: it would fail with the `error` that comes first.
  const closed = new Promise<void>((settle) => lent.once('end', () => settle()))
  const statement = assert.rejects(lent.query('select pg_sleep(60)'), isConnectionLoss)
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  await Promise.all([statement, closed])
  lent.release(true)
  // Its process ends when it sees that the server is gone, and may serve a statement before.
  await waitUntil(async () => pool.totalCount === 0, 30_000, 'the idle connection to end')
  await assert.rejects(pool.query('select 1'), isConnectionLoss)
  await start(t, home)
  assert.deepEqual((await pool.query('select 2 as two')).rows, [{ two: 2 }])
})

async function works({ db }: Pick<Database, 'db'>): Promise<boolean> {
  try {
    return (await db`select 1`).length === 1
  } catch (error) {
    if (isConnectionLoss(error)) return false
    throw error
  }
}

async function allAsleep(url: string, sessions: number) {
  const watcher = openDatabase({ url, max: 1, log })
  const areAsleep = async () => {
    const [row] = await watcher.db`select count(*)::int as n from pg_stat_activity where wait_event = 'PgSleep'`
    return row?.n === sessions
  }
  await waitUntil(areAsleep, 5_000, 'the statements to start')
  await watcher.close()
}
