// A server keeps each text that was prepared, with its plan, until the session ends. Callers compose texts, by filters.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openDatabase, type Sql } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'

const database = await testDatabase()
after(() => database.close())

const FILTERS = 6
const ALL = Array.from({ length: 2 ** FILTERS }, (_, n) => n)
const MOST = 8

/** One place in the code, with a text for each set of filters. Answers their sum. */
function sumOf(db: Sql, filters: number, value: number): PromiseLike<[{ sum: number }]> {
  let text = db`0`
  for (let i = 0; i < FILTERS; i++)
    if (filters & (1 << i)) text = db`${text} + ${value}::int * ${db.unsafe(String(2 ** i))}`
  return db<[{ sum: number }]>`select ${text} as sum, 'composed' as marked`
}

async function preparedIn(db: Sql): Promise<string[]> {
  const rows = await db<{ statement: string }[]>`
    select statement from pg_prepared_statements where statement like '%as marked' order by statement`
  return rows.map(({ statement }) => statement)
}

test('of texts that callers compose a session keeps few, and each answers for itself', async (t) => {
  const single = openDatabase({ url: database.url, max: 1, log })
  t.after(() => single.close())
  const { db } = single
  // At once, so that they stand in line in the connection, and again, so that they were let go meanwhile.
  for (let round = 0; round < 3; round++) {
    const rows = await Promise.all(ALL.map((filters) => sumOf(db, filters, round)))
    assert.deepEqual(
      rows.map(([{ sum }]) => sum),
      ALL.map((filters) => filters * round),
    )
    assert.equal((await preparedIn(db)).length, MOST)
  }
})

test('those that were used last are kept, also within a transaction and behind an error', async (t) => {
  const single = openDatabase({ url: database.url, max: 1, log })
  t.after(() => single.close())
  const { db } = single
  await sumOf(db, 63, 1)
  const [popular] = await preparedIn(db)
  for (const filters of ALL.slice(0, 30)) {
    const sums = await db.begin((tx) => Promise.all([sumOf(tx, filters, 1), sumOf(tx, 63, 1)]))
    assert.deepEqual(
      sums.map(([{ sum }]) => sum),
      [filters, 63],
    )
    // Too large for an int: an error of the server.
    await assert.rejects(async () => sumOf(db, 63, 2 ** 31 - 1), /out of range/)
  }
  const after30 = await preparedIn(db)
  assert.ok(after30.includes(popular!) && after30.length === MOST, after30.join('\n'))
})

test('one without parameters that was prepared several times at once is kept once', async (t) => {
  const single = openDatabase({ url: database.url, max: 1, log })
  t.after(() => single.close())
  const { db } = single
  for (let n = 0; n < 10; n++) {
    const one = () => db<[{ n: number }]>`select ${db.unsafe(String(n))} as n, 'composed' as marked`
    for (const [row] of await Promise.all(Array.from({ length: 20 }, one))) assert.equal(row.n, n)
  }
  assert.equal((await preparedIn(db)).length, MOST)
})

test('places that compose the same texts have no more of them together than each for itself', async (t) => {
  const single = openDatabase({ url: database.url, max: 1, log })
  t.after(() => single.close())
  const { db } = single
  const double = (value: number, text: string) =>
    db<[{ sum: number }]>`select ${value}::int * ${db.unsafe(text)} as sum, 'composed' as marked`
  const twice = (value: number, text: string) =>
    db<[{ sum: number }]>`select ${value}::int * ${db.unsafe(text)} as sum, 'composed' as marked`
  for (const filters of ALL) {
    const callers = filters % 2 === 0 ? [double, twice] : [twice, double]
    for (const call of callers) {
      const [{ sum }] = await call(3, String(filters))
      assert.equal(sum, 3 * filters)
    }
  }
  const count = (await preparedIn(db)).length
  assert.ok(count <= 2 * MOST, `${count} texts`)
})
