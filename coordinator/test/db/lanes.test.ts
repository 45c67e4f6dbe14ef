import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { type Database, type Db, isConnectionLoss } from '../../db/client.ts'
import { type Lanes, openLanes } from '../../db/lanes.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'

const log = createLog({}, 'error')
const opened: Lanes[] = []
let database: Database

before(async () => {
  database = await testDatabase()
})
afterEach(() => Promise.all(opened.splice(0).map((lanes) => lanes.close())))
after(() => database.close())

function lanesOf(count: number): Lanes {
  const lanes = openLanes(count, { url: database.url, log })
  opened.push(lanes)
  return lanes
}

/** The process that serves this connection. */
async function serverOf(db: Db): Promise<number> {
  const [row] = await db<[{ pid: number }]>`select pg_backend_pid() as pid`
  return row.pid
}

/** Ends a server as soon as it sleeps. */
async function cut(server: number): Promise<void> {
  await untilPolled('the statement to be executed', async () => {
    const rows = await database.db`
      select from pg_stat_activity where pid = ${server} and state = 'active' and query like '%pg_sleep%'`
    return rows.length > 0
  })
  await database.db`select pg_terminate_backend(${server})`
}

/** Work that goes on until it is let go. */
function held() {
  const begun = Promise.withResolvers<number>()
  const letGo = Promise.withResolvers<void>()
  const work = async (db: Db) => {
    begun.resolve(await serverOf(db))
    await letGo.promise
  }
  return { work, begun: begun.promise, letGo: letGo.resolve }
}

test('one piece of work after the other has the same connection, however many there might be', async () => {
  const lanes = lanesOf(3)
  const servers = new Set<number>()
  for (let i = 0; i < 20; i++) servers.add(await lanes.run(serverOf))
  assert.equal(servers.size, 1)
})

// Sixty pools of one org that were polled without end kept the claims of another org waiting behind all of theirs.
test('orgs take turns at a connection', async () => {
  const lanes = lanesOf(1)
  const first = held()
  const running = lanes.run(first.work, 'loud')
  await first.begun
  const order: string[] = []
  const note = (name: string, orgId: string) => lanes.run(() => Promise.resolve(order.push(name)), orgId)
  const all = [note('loud 1', 'loud'), note('loud 2', 'loud'), note('loud 3', 'loud'), note('quiet', 'quiet')]
  first.letGo()
  await Promise.all([running, ...all])
  assert.deepEqual(order, ['loud 1', 'quiet', 'loud 2', 'loud 3'])
})

test('pieces of work at once have a connection each, and who finds none waits for the first that is free', async () => {
  const lanes = lanesOf(2)
  const [first, second] = [held(), held()]
  const both = [lanes.run(first.work), lanes.run(second.work)]
  const [firstServer, secondServer] = [await first.begun, await second.begun]
  assert.notEqual(firstServer, secondServer)
  const waiting = [lanes.run(serverOf), lanes.run(serverOf)]
  second.letGo()
  assert.deepEqual(await Promise.all(waiting), [secondServer, secondServer])
  first.letGo()
  await Promise.all(both)
  assert.equal(await lanes.run(serverOf), firstServer)
})

test('work that waits for a lock does not hold up other work', async () => {
  const lanes = lanesOf(2)
  const { db } = database
  await db`create table counters (id int primary key, n int not null)`
  await db`insert into counters values (1, 0)`
  const add = (lane: Db) => lane`update counters set n = n + 1 where id = 1`
  let blocked: Promise<unknown> | undefined
  await db.begin(async (tx) => {
    await tx`select from counters where id = 1 for update`
    blocked = lanes.run((lane) => add(lane).then(() => undefined))
    await untilBlocked(db, 'update counters%')
    const servers = await Promise.all([lanes.run(serverOf), lanes.run(serverOf)])
    assert.equal(servers[0], servers[1])
  })
  await blocked
})

test('a lane is free again after work that fails, and works again after its connection was cut', async () => {
  const lanes = lanesOf(1)
  const server = await lanes.run(serverOf)
  await assert.rejects(
    lanes.run((lane) => lane`select 1 / 0`.then(() => undefined)),
    /division by zero/,
  )
  assert.equal(await lanes.run(serverOf), server)
  await assert.rejects(
    // Amid a statement: one that is sent after the end was heard of goes to the next connection, and succeeds.
    lanes.run(async (lane) => {
      const sleeping = lane`select pg_sleep(60)`.then(() => undefined)
      await Promise.all([sleeping, cut(server)])
    }),
    isConnectionLoss,
  )
  // A statement may still be given to the connection whose end has not been heard of; callers repeat theirs.
  const other = await untilPolled('the lane to work again', () =>
    lanes.run(serverOf).catch((error: unknown) => {
      if (isConnectionLoss(error)) return undefined
      throw error
    }),
  )
  assert.notEqual(other, server)
})
