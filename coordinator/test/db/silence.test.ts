// The database's machine vanishes: connections stay open, and nothing comes any more. New ones work at once.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { type Db, isConnectionLoss, openDatabase, openPgPool } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWay } from '../_kit/way.ts'

const STATEMENT_MS = 3000

let database: Awaited<ReturnType<typeof testDatabase>>
let way: Awaited<ReturnType<typeof aWay>>

before(async () => {
  database = await testDatabase()
  way = await aWay(database.url)
})
after(async () => {
  way.close()
  await database.close()
})

function aPool(t: TestContext, max = 1) {
  const pool = openDatabase({ url: way.url, max, log, statementTimeoutMs: STATEMENT_MS })
  t.after(() => pool.close())
  return pool.db
}

/** What comes between the error and the end of the connection is told the same. */
function works(db: Db): Promise<unknown> {
  return untilPolled('a new connection', () =>
    db`select 4`.then(
      () => true,
      (error: unknown) => {
        if (isConnectionLoss(error)) return false
        throw error
      },
    ),
  )
}

test('a statement to a server that has vanished is told a lost connection, and others find the new one', async (t) => {
  const db = aPool(t)
  await db`select 1`
  way.vanish()
  const waiting = [db`select 2`, db`select 3`].map((statement) => statement.execute())
  for (const each of await Promise.allSettled(waiting))
    assert.ok(each.status === 'rejected' && isConnectionLoss(each.reason), JSON.stringify(each))
  await works(db)
})

test('so does a transaction, also one that has heard something', async (t) => {
  const db = aPool(t)
  const begun = db.begin(async (tx) => {
    await tx`select 1`
    way.vanish()
    await tx`select 2`
  })
  await assert.rejects(begun, isConnectionLoss)
  await works(db)
})

test('a library that lends its connections gets none that is silent', async (t) => {
  const pool = openPgPool(way.url, { max: 1, log, queryTimeoutMs: 500 })
  t.after(() => pool.end())
  /** As graphile-worker does: it gives the connection back whatever became of it. */
  const lent = async (text: string) => {
    const client = await pool.connect()
    try {
      return await client.query(text)
    } finally {
      client.release()
    }
  }
  await lent('select 1')
  way.vanish()
  await assert.rejects(lent('select 2'))
  await untilPolled('a new connection', () => lent('select 3').then(() => true, isConnectionLoss))
})

test('a connection that waits for nothing may be silent', async (t) => {
  const db = aPool(t)
  const [first] = await db`select pg_backend_pid() as pid`
  // Longer than a statement may be silent, by the looks of this process.
  await untilPolled('some time to pass', async () => {
    const [row] = await database.db`
      select clock_timestamp() - state_change > interval '6 seconds' as is_late
      from pg_stat_activity where pid = ${first!.pid}`
    return row!.isLate === true
  })
  const [second] = await db`select pg_backend_pid() as pid`
  assert.equal(second!.pid, first!.pid)
})

test('a process that has stood still takes no answer for missing', async (t) => {
  const db = aPool(t)
  await db`select 1`
  const answer = db`select pg_backend_pid() as pid`.execute()
  // Written in this turn of the loop; the answer comes while nothing is read.
  await new Promise(setImmediate)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 7000)
  assert.ok((await answer)[0]!.pid)
})
