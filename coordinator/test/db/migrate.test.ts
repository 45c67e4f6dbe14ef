import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { type Database, openDatabase } from '../../db/client.ts'
import { migrate } from '../../db/migrate.ts'
import { outgrownBy, watchDatabase } from '../../db/schema-watch.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'

const log = createLog({ part: 'test' }, 'error')
const root = await mkdtemp(join(tmpdir(), 'windlass-migrations-'))
const empty = await aFolder({})
// Holds the server of this file from the first test to the last.
const first = await testDatabase({ folder: empty })
after(async () => {
  await first.close()
  await rm(root, { recursive: true })
})

async function aFolder(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(root, 'folder-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return folder
}

async function anEmptyDatabase(t: TestContext): Promise<Database> {
  const database = await testDatabase({ folder: empty })
  t.after(() => database.close())
  return database
}

const TWO = {
  '0001-things.sql': 'create table things (id int);\ninsert into things values (1);',
  '0002-more.sql': '-- breaking\nalter table things add note text;',
}
const INDEX = '-- online\ncreate index concurrently things_by_id on things (id)'

test('the migrations are applied in their order, recorded, and not applied again', async (t) => {
  const database = await anEmptyDatabase(t)
  const folder = await aFolder(TWO)
  assert.deepEqual((await migrate(database, { folder, log })).applied, ['0001-things.sql', '0002-more.sql'])
  assert.deepEqual(await migrate(database, { folder, log }), { applied: [], known: 2 })
  const rows = await database.db`
    select number, name, breaking, length(checksum) as digits, applied_at <= now() as is_past
    from windlass_migrations
    order by number`
  assert.deepEqual(
    [...rows],
    [
      { number: 1, name: 'things', breaking: false, digits: 64, isPast: true },
      { number: 2, name: 'more', breaking: true, digits: 64, isPast: true },
    ],
  )
  assert.equal((await database.db`select id, note from things`).length, 1)
})

test('the product’s own migrations apply to an empty database', async (t) => {
  const database = await anEmptyDatabase(t)
  const { applied } = await migrate(database, { log })
  assert.ok(applied.length > 0)
})

test('three coordinators that start together all pass, and each step is done once', async (t) => {
  const database = await anEmptyDatabase(t)
  const steps = Array.from({ length: 6 }, (_, n) => [
    `000${n + 2}-step.sql`,
    `insert into things select ${n} from pg_sleep(0.02)`,
  ])
  const folder = await aFolder({ ...Object.fromEntries(steps), '0001-things.sql': 'create table things (id int)' })
  const all = await Promise.all([1, 2, 3].map(() => migrate(database, { folder, log })))
  assert.equal(all.flatMap((each) => each.applied).length, 7)
  assert.equal((await database.db`select * from things`).length, 6)
})

test('a concurrent index is built outside of a transaction, also while others wait for their turn', async (t) => {
  const database = await anEmptyDatabase(t)
  const folder = await aFolder({ ...TWO, '0003-things-by-id.sql': INDEX })
  const all = await Promise.all([1, 2, 3].map(() => migrate(database, { folder, log })))
  assert.equal(all.flatMap((each) => each.applied).length, 3)
  const rows = await database.db`select indisvalid from pg_index where indexrelid = 'things_by_id'::regclass`
  assert.deepEqual([...rows], [{ indisvalid: true }])
})

test('a migration that fails leaves nothing, names its line, and those before it stay', async (t) => {
  const database = await anEmptyDatabase(t)
  const folder = await aFolder({
    ...TWO,
    '0003-bad.sql': 'create table kept (id int);\n\ninsert into nowhere values (1);',
  })
  await assert.rejects(
    migrate(database, { folder, log }),
    /0003-bad\.sql failed in line 3: relation "nowhere" does not exist.*Nothing of it was kept/,
  )
  const [row] = await database.db`select to_regclass('kept') as kept, count(*)::int as n from windlass_migrations`
  assert.deepEqual({ ...row }, { kept: null, n: 2 })
})

test('an online migration that fails says that something of it may be left', async (t) => {
  const database = await anEmptyDatabase(t)
  const folder = await aFolder({
    '0001-things.sql': 'create table things (id int); insert into things values (1), (1)',
    '0002-unique.sql': '-- online\ncreate unique index concurrently one_each on things (id)',
  })
  await assert.rejects(migrate(database, { folder, log }), /0002-unique\.sql failed.*remove what it left/)
})

test('a migration that was changed after it was applied stops the start', async (t) => {
  const database = await anEmptyDatabase(t)
  await migrate(database, { folder: await aFolder(TWO), log })
  const unixAndWindows = await aFolder({ ...TWO, '0001-things.sql': TWO['0001-things.sql'].replace('\n', '\r\n') })
  assert.deepEqual(await migrate(database, { folder: unixAndWindows, log }), { applied: [], known: 2 })
  const changed = await aFolder({ ...TWO, '0001-things.sql': 'create table things (id bigint)' })
  await assert.rejects(migrate(database, { folder: changed, log }), /0001-things\.sql .* put its text back/)
})

test('a database that a preview made is recognised, with what to do', async (t) => {
  const database = await anEmptyDatabase(t)
  await migrate(database, { folder: await aFolder(TWO), log })
  await database.db`update windlass_migrations set name = 'spine' where number = 1`
  await assert.rejects(migrate(database, { log }), /by a preview of Windlass.*another, empty database.*WINDLASS_HOME/)
  const [row] = await database.db`select count(*)::int as n, to_regclass('runs') as runs from windlass_migrations`
  assert.deepEqual({ ...row }, { n: 2, runs: null })
})

test('a database that older programs cannot use stops their start', async (t) => {
  const database = await anEmptyDatabase(t)
  await migrate(database, { folder: await aFolder(TWO), log })
  const older = await aFolder({ '0001-things.sql': TWO['0001-things.sql'] })
  await assert.rejects(
    migrate(database, { folder: older, log }),
    /newer than this Windlass: it has the migration 0002-more, this program knows 1, and cannot be used by older programs/,
  )
})

test('a program goes on with a newer database, and ends by itself when that has outgrown it', async (t) => {
  const database = await anEmptyDatabase(t)
  const older = await aFolder({ '0001-things.sql': TWO['0001-things.sql'] })
  const { known } = await migrate(database, { folder: older, log })
  const stopping = new AbortController()
  t.after(() => stopping.abort())
  const outgrown = watchDatabase([() => outgrownBy(database.db, known)], { signal: stopping.signal, everyMs: 10 })

  const newer = { '0001-things.sql': TWO['0001-things.sql'], '0002-index.sql': 'create index on things (id)' }
  await migrate(database, { folder: await aFolder(newer), log })
  assert.equal(await outgrownBy(database.db, known), undefined)
  assert.deepEqual(await migrate(database, { folder: older, log }), { applied: [], known: 1 })

  const newest = await aFolder({ ...newer, '0003-more.sql': TWO['0002-more.sql'] })
  await migrate(database, { folder: newest, log })
  assert.match((await outgrown) ?? '', /by the migration 0003-more, after which this one cannot work on it/)
  await assert.rejects(
    migrate(database, { folder: older, log }),
    /it has the migration 0003-more, this program knows 1/,
  )
  assert.equal(await outgrownBy(database.db, 3), undefined)
})

test('a program that is stopped looks no more', async (t) => {
  const database = await anEmptyDatabase(t)
  const { known } = await migrate(database, { folder: await aFolder(TWO), log })
  const stopping = new AbortController()
  const outgrown = watchDatabase([() => outgrownBy(database.db, known)], {
    signal: stopping.signal,
    everyMs: 3_600_000,
  })
  stopping.abort()
  assert.equal(await outgrown, undefined)
})

test('a number that is missing in the database stops the start', async (t) => {
  const database = await anEmptyDatabase(t)
  const folder = await aFolder(TWO)
  await migrate(database, { folder, log })
  await database.db`delete from windlass_migrations where number = 1`
  await assert.rejects(migrate(database, { folder, log }), /lacks number 1/)
})

test('a number left out, a number used twice and a bad name in the folder are refused', async (t) => {
  const database = await anEmptyDatabase(t)
  const left = await aFolder({ '0001-a.sql': 'select 1', '0003-b.sql': 'select 1' })
  await assert.rejects(migrate(database, { folder: left, log }), /0003-b\.sql .* should have the number 0002/)
  const twice = await aFolder({ '0001-a.sql': 'select 1', '0001-b.sql': 'select 1' })
  await assert.rejects(migrate(database, { folder: twice, log }), /0001-b\.sql .* should have the number 0002/)
  await assert.rejects(migrate(database, { folder: await aFolder({ '1_a.sql': '' }), log }), /needs a name like/)
})

test('who waits too long for another coordinator is told what to look at', async (t) => {
  const database = await anEmptyDatabase(t)
  const slow = await aFolder({ '0001-slow.sql': 'select pg_sleep(1.5)' })
  const holder = migrate(database, { folder: slow, log })
  await sleeping(database)
  await assert.rejects(migrate(database, { folder: slow, log, lockWithinMs: 200 }), /more than 0\.2 s.*pg_locks/)
  assert.deepEqual(await holder, { applied: ['0001-slow.sql'], known: 1 })
})

const sleeping = ({ db }: Database) =>
  untilPolled('the slow migration', async () => {
    const rows = await db`
      select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`
    return rows.length > 0
  })

/** Another session that has read the table and stays in its transaction, as a dump does. */
async function aReader(t: TestContext, database: Database, table: string) {
  const own = openDatabase({ url: database.url, max: 1, log })
  t.after(() => own.close())
  const [held, ended] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
  const reading = own.db.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`
    await tx`set local application_name = 'pg_dump'`
    await tx`lock table ${tx(table)} in access share mode`
    const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
    held.resolve(row!.pid)
    await ended.promise
  })
  const end = () => {
    ended.resolve()
    return reading
  }
  return { pid: await held.promise, end }
}

test('a step whose table is held gives way, says whom it waits for, and goes on when that has ended', async (t) => {
  const database = await anEmptyDatabase(t)
  await migrate(database, { folder: await aFolder({ '0001-things.sql': TWO['0001-things.sql'] }), log })
  const reader = await aReader(t, database, 'things')
  const waits = Promise.withResolvers<{ for: string; by: { pid: number }[] }>()
  const heard = createLog({}, 'warn', {
    write: (line) => line.includes('database.migration.waits') && waits.resolve(JSON.parse(line)),
  })
  const migrating = migrate(database, { folder: await aFolder(TWO), log: heard })
  const said = await Promise.race([waits.promise, migrating.then(() => assert.fail('it did not wait'))])
  assert.deepEqual(
    said.by.map(({ pid }) => pid),
    [reader.pid],
  )
  assert.match(said.for, /^pg_dump \(pid \d+, since [\d-]+ [\d:]+ UTC\)$/)
  // It waits, and holds nothing meanwhile.
  await database.db`insert into things values (2)`
  await reader.end()
  assert.deepEqual((await migrating).applied, ['0002-more.sql'])
})

test('a step waits for a table no longer than it may, and the start ends with whom to end', async (t) => {
  const database = await anEmptyDatabase(t)
  await migrate(database, { folder: await aFolder({ '0001-things.sql': TWO['0001-things.sql'] }), log })
  const reader = await aReader(t, database, 'things')
  await assert.rejects(
    migrate(database, { folder: await aFolder(TWO), log, tablesWithinMs: 0 }),
    new RegExp(
      `0002-more\\.sql waits for pg_dump \\(pid ${reader.pid}, .*Nothing of it was kept.*pg_terminate_backend`,
    ),
  )
  await reader.end()
})
