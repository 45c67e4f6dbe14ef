import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { unreachable } from '../../admin/open.ts'
import { openDatabase } from '../../db/client.ts'
import { OTHER_CONNECTIONS, refuseUnfit, warnOfRoom } from '../../db/fit.ts'
import { migrate } from '../../db/migrate.ts'
import { aCoordinatorOfItsOwn } from '../_kit/coordinator.ts'
import { testDatabase } from '../_kit/database.ts'

const server = await testDatabase()
after(() => server.close())
const { db } = server
const log = createLog({ part: 'test' }, 'error')

const aName = () => `windlass_test_fit_${process.pid}_${randomBytes(4).toString('hex')}`

interface Asked {
  encoding?: string
  /** By a role of its own, which may do nothing in it yet and has so many connections. */
  connections?: number
}

/** An empty database, and who owns it. */
async function anEmpty(t: TestContext, { encoding = 'UTF8', connections }: Asked = {}) {
  const name = aName()
  await db.unsafe(`create database ${name} encoding '${encoding}' locale 'C' template template0`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  const owner = openDatabase({ url: url.href, max: 1, log })
  if (connections !== undefined) {
    await db.unsafe(`create role ${name} login password '${name}' connection limit ${connections}`)
    Object.assign(url, { username: name, password: name })
  }
  const database = openDatabase({ url: url.href, max: 1, log })
  t.after(async () => {
    await Promise.all([owner.close(), database.close()])
    await db.unsafe(`drop database ${name} with (force)`)
    await db.unsafe(`drop role if exists ${name}`)
  })
  return { ...database, name, ownerDb: owner.db }
}

test('a new database of another encoding is refused before anything is made, with the way to another', async (t) => {
  const database = await anEmpty(t, { encoding: 'LATIN1' })
  await assert.rejects(migrate(database, { log }), (error: Error) => {
    assert.match(error.message, new RegExp(`"${database.name}" has the encoding LATIN1.*encoding 'UTF8' locale 'C'`))
    return true
  })
  const [row] = await database.db`select to_regclass('windlass_migrations') as made`
  assert.equal(row?.['made'], null)
})

test('one that is in use is served on, with a warning', async (t) => {
  const database = await anEmpty(t, { encoding: 'LATIN1' })
  await database.db`create table windlass_migrations ()`
  const warned = t.mock.method(log, 'warn', () => {})
  await refuseUnfit(database.db, log)
  assert.equal(warned.mock.callCount(), 1)
  const [name, facts] = warned.mock.calls[0]!.arguments as unknown as [string, { encoding: string; reason: string }]
  assert.deepEqual([name, facts.encoding], ['database.encoding', 'LATIN1'])
})

test('a role that lacks a right is told what its owner has to say, until it has all of them', async (t) => {
  const database = await anEmpty(t, { connections: -1 })
  const { name, ownerDb } = database
  await ownerDb.unsafe(`revoke all on schema public from public`)
  for (const grant of [
    `grant usage, create on schema public to ${name}`,
    `grant create on database ${name} to ${name}`,
  ]) {
    await assert.rejects(refuseUnfit(database.db, log), ({ message }: Error) => message.endsWith(`: \`${grant};\``))
    await ownerDb.unsafe(grant)
  }
  await ownerDb.unsafe(`revoke create on schema public from ${name}`)
  await assert.rejects(refuseUnfit(database.db, log), /: `grant create on schema public to /)
  await ownerDb.unsafe(`grant create on schema public to ${name}`)
  await refuseUnfit(database.db, log)
  assert.ok((await migrate(database, { log })).applied.length > 0)
})

test('a role that another one has restored the tables for is told how to restore them', async (t) => {
  const database = await anEmpty(t, { connections: -1 })
  const { name, ownerDb } = database
  await ownerDb.unsafe(`grant all on schema public to ${name}; grant create on database ${name} to ${name}`)
  await ownerDb`create table windlass_migrations ()`
  const error = await database.db`table windlass_migrations`.catch((denied: unknown) => denied)
  assert.match(unreachable(error).next, /pg_restore --no-owner --role=/)
  await ownerDb.unsafe(`grant all on all tables in schema public to ${name}`)
  await assert.rejects(migrate(database, { log }), ({ message }: Error) =>
    message.includes(`names "${name}". A backup has to be restored for the role of the coordinators: \`pg_restore`),
  )
  await ownerDb.unsafe(`alter table windlass_migrations owner to ${name}`)
  await refuseUnfit(database.db, log)
})

test('a schema that only the search_path knows is to be made', async (t) => {
  const { url, name, ownerDb } = await anEmpty(t, { connections: -1 })
  await ownerDb.unsafe(`alter role ${name} set search_path = "Wind lass"`)
  const database = openDatabase({ url, log })
  t.after(() => database.close())
  const said = `create schema "Wind lass" authorization ${name}`
  await assert.rejects(refuseUnfit(database.db, log), ({ message }: Error) => message.endsWith(`: \`${said};\``))
  await ownerDb.unsafe(said)
  await assert.rejects(refuseUnfit(database.db, log), /: `grant create on database/)
})

test('the jobs need no right to a schema that they have', async (t) => {
  const { db: own, ownerDb, name } = await anEmpty(t, { connections: -1 })
  await ownerDb.unsafe(`grant usage, create on schema public to ${name}`)
  await assert.rejects(refuseUnfit(own, log), /grant create on database/)
  await ownerDb.unsafe(`create schema graphile_worker authorization ${name}`)
  await own.unsafe(`create table graphile_worker.migrations ()`)
  await refuseUnfit(own, log)
})

test('fewer sessions than may be wanted are warned of, with the setting and what it has to be', async (t) => {
  const warned = t.mock.method(log, 'warn', () => {})
  const said = () => warned.mock.calls.map(({ arguments: [name, facts] }) => ({ name, ...(facts as unknown as Said) }))
  await warnOfRoom(db, log, 12)
  assert.deepEqual(said(), [], 'the test server has 200')
  await warnOfRoom(db, log, 200)
  assert.deepEqual(said(), [
    {
      name: 'database.connections.few',
      wanted: 222,
      room: 200,
      reason:
        'each coordinator opens up to 222 connections, and max_connections of PostgreSQL is 200, with 0 of them ' +
        'reserved for superusers',
      advice:
        'set max_connections to 222 at least and restart PostgreSQL, for each coordinator, or lower ' +
        'WINDLASS_DATABASE_CONNECTIONS from 200 to 4 at least',
    },
  ])
})

test('so are the limits of a role and of a database, the lower one', async (t) => {
  const { db: own, ownerDb, name } = await anEmpty(t, { connections: 30 })
  const warned = t.mock.method(log, 'warn', () => {})
  const last = () => warned.mock.calls.at(-1)?.arguments[1] as unknown as Said
  await warnOfRoom(own, log, 12)
  assert.deepEqual([last().room, last().wanted], [30, 12 + OTHER_CONNECTIONS])
  assert.match(last().advice, /^`alter role <name> connection limit 34`/)
  await ownerDb.unsafe(`alter database ${name} connection limit 26`)
  await warnOfRoom(own, log, 5)
  assert.match(last().advice, /^`alter database <name> connection limit 27`/)
  await warnOfRoom(own, log, 4)
  assert.equal(warned.mock.callCount(), 2)
})

test('a coordinator says so at its start', async (t) => {
  const own = createLog({ part: 'test' }, 'error')
  const warned = t.mock.method(own, 'warn', () => {})
  const c = await aCoordinatorOfItsOwn({ DATABASE_CONNECTIONS: 179 }, { log: own })
  await c.stop()
  const names = warned.mock.calls.map(({ arguments: [name] }) => name)
  assert.equal(names.filter((name) => name === 'database.connections.few').length, 1)
})

interface Said {
  wanted: number
  room: number
  reason: string
  advice: string
}
