import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { firstIdAt, newId, type RunId, timeOf } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { Database } from '../../db/client.ts'
import { openDatabase } from '../../db/client.ts'
import { byMonth, makePartitions, makePartitionsAhead } from '../../db/partitions.ts'
import { insert } from '../../events/store.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'

const log = createLog({ part: 'test' }, 'error')
const DAY_MS = 24 * 60 * 60 * 1000

let database: Database
before(async () => {
  database = await testDatabase()
})
after(() => database.close())

const monthsOf = async (table: string) => {
  const rows = await database.db<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${table}::regclass order by 1`
  return rows.map(({ name }) => name)
}
const eventOf = (runId: RunId, cursor = 1) =>
  ({ runId, orgId: newId('org'), cursor, at: 1, channel: 'log', type: 'log.stdout', dataText: '{}' }) as const
const write = (...ids: RunId[]) =>
  database.db.begin((tx) =>
    insert(
      tx,
      ids.map((id) => eventOf(id)),
    ),
  )
/** A moment so many months from now, and some milliseconds from the end of the month before. */
function monthStart(later: number, ms = 0): number {
  const now = new Date()
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + later, 1) + ms
}

test('a database that a coordinator has started on has this month, the one before and two ahead', async () => {
  const expected = [-1, 0, 1, 2].map((later) => new Date(monthStart(later)).toISOString().slice(0, 7).replace('-', '_'))
  for (const table of ['run_events', 'journal'])
    assert.deepEqual(
      await monthsOf(table),
      expected.map((month) => `${table}_${month}`),
    )
})

test('a partition has the keys, indexes and settings that its table needs', async () => {
  const [name] = (await monthsOf('journal')).slice(-1)
  const indexes = await database.db<{ columns: string }[]>`
    select pg_get_indexdef(indexrelid) as columns from pg_index where indrelid = ${name!}::regclass order by 1`
  const text = indexes.map(({ columns }) => columns).join('\n')
  for (const part of ['(run_id, n)', "WHERE (state = 'open'", 'WHERE ((completion IS NOT NULL)'])
    assert.ok(text.includes(part))
  const [row] = await database.db`select reloptions from pg_class where oid = ${name!}::regclass`
  assert.ok(row!.reloptions.includes('fillfactor=80'))
})

test('ids of clocks that are a month off, at either end of a month, have their partition', async () => {
  const moments = [
    monthStart(-1),
    monthStart(0, -1),
    monthStart(0),
    monthStart(1, -1),
    monthStart(1),
    monthStart(3, -1),
  ]
  await write(...moments.map((at) => firstIdAt('run', at)))
  await assert.rejects(write(firstIdAt('run', monthStart(3))), /no partition of relation "run_events" found for row/)
})

test('what happens to a run goes into the month in which it was created', async () => {
  const old = firstIdAt('run', monthStart(-30, 5))
  await makePartitions(database.db, log, [timeOf(old)])
  await write(old)
  const [row] = await database.db<{ name: string }[]>`
    select tableoid::regclass::text as name from run_events where run_id = ${old}`
  assert.equal(row!.name, `run_events_${new Date(monthStart(-30)).toISOString().slice(0, 7).replace('-', '_')}`)
})

test('coordinators that start together make each partition once', async () => {
  const months = Array.from({ length: 6 }, (_, i) => monthStart(10 + i))
  const others = [1, 2, 3].map(() => openDatabase({ url: database.url, max: 1, log }))
  await Promise.all(others.map(({ db }) => makePartitions(db, log, months)))
  await Promise.all(others.map((other) => other.close()))
  for (const at of months) await write(firstIdAt('run', at))
})

test('one that has waited for another finds what that has made', async () => {
  const [first, end] = [monthStart(20), monthStart(21)]
  const waiter = openDatabase({ url: database.url, max: 1, log })
  const [server] = await waiter.db<[{ pid: number }]>`select pg_backend_pid() as pid`
  const { promise: waiting } = await database.db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtext('windlass partitions'))`
    const promise = makePartitions(waiter.db, log, [first])
    await untilPolled('the other one to wait', async () => {
      const rows = await tx`
        select from pg_locks where pid = ${server.pid} and locktype = 'advisory' and not granted`
      return rows.length > 0
    })
    const month = new Date(first).toISOString().slice(0, 7).replace('-', '_')
    for (const table of ['run_events', 'journal'])
      await tx`
        select add_partition(${table}, ${`${table}_${month}`}, ${firstIdAt('run', first)}, ${firstIdAt('run', end)})`
    return { promise }
  })
  await waiting
  await waiter.close()
  await write(firstIdAt('run', first))
})

test('a process whose clock is far ahead makes the partitions for its own ids', async (t) => {
  t.mock.method(Date, 'now', () => monthStart(40, 1))
  const id = newId('run')
  t.mock.restoreAll()
  // Ids never go back, so the next ones are of that time as well.
  assert.ok(timeOf(newId('run')) >= monthStart(40))
  await makePartitionsAhead(database.db, log)
  await write(id, newId('run'))
})

test('a partition is made beside an open reader, and no writer waits for it', async () => {
  const other = openDatabase({ url: database.url, max: 1, log })
  await other.db.begin(async (tx) => {
    await tx`select count(*) from run_events`
    await tx`insert into run_events values (${firstIdAt('run', Date.now())}, 7, 1, 'log', 'x', '{}')`
    await makePartitions(database.db, log, [monthStart(-50)])
    await write(firstIdAt('run', monthStart(-50)))
  })
  await other.close()
})

test('ids are told apart by their month', () => {
  const ids = [monthStart(0), monthStart(1, -1), monthStart(1)].map((at) => firstIdAt('run', at))
  assert.deepEqual(byMonth(ids), [ids.slice(0, 2), ids.slice(2)])
  assert.ok(Math.abs(timeOf(firstIdAt('run', Date.now() - DAY_MS)) - (Date.now() - DAY_MS)) < DAY_MS / 2)
})
