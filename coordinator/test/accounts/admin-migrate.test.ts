// A restored database is brought up to date before a coordinator starts on it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrateDatabase } from '../../admin/migrate.ts'
import { CannotOpen, openAdmin } from '../../admin/open.ts'
import { listOrgs } from '../../admin/orgs.ts'
import { testDatabase } from '../_kit/database.ts'

const user = 'ada@host'

test('a database that is behind is brought up to date, and one that is not is left as it is', async (t) => {
  const database = await testDatabase()
  t.after(() => database.close())
  const made = await database.db`select number from windlass_migrations`
  assert.deepEqual(await migrateDatabase(database.url), [])
  await database.db.unsafe('drop schema public cascade; create schema public')
  await assert.rejects(openAdmin({ databaseUrl: database.url, user }), /holds no Windlass yet/)
  assert.equal((await migrateDatabase(database.url)).length, made.length)
  const admin = await openAdmin({ databaseUrl: database.url, user })
  t.after(() => admin.close())
  assert.deepEqual(await listOrgs(admin), [])
})

test('one that is newer, and an address that leads nowhere, are refused as by the other commands', async (t) => {
  const database = await testDatabase()
  t.after(() => database.close())
  await database.db`
    insert into windlass_migrations (number, name, checksum, breaking)
    select max(number) + 1, 'later', '', true from windlass_migrations`
  const refused = (url: string) => assert.rejects(migrateDatabase(url), CannotOpen)
  await refused(database.url)
  await refused('mysql://host/database')
  await refused('postgres://somebody@127.0.0.1:1/any')
})
