import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Database } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import { testDatabase } from '../_kit/database.ts'

let database: Database
before(async () => {
  database = await testDatabase()
})
after(() => database.close())

const rows = [
  { id: 'a', orgId: 'x', count: 3, ms: 0.5, note: null },
  { id: 'b', orgId: "'; --", count: -1, ms: 1e20, note: 'NULL' },
  { id: 'c', orgId: '{"a",b}', count: 0, ms: 0, note: '\\' },
]
const sql = () => database.db

test('rows come back as they were', async () => {
  const found = await sql()`
    select * from ${unnest(sql(), 't', rows, {
      id: 'text',
      orgId: 'text',
      count: 'int',
      ms: 'float8',
      note: 'text',
      at: ['int', (_, i) => i],
      size: ['bigint', (row) => row.orgId.length],
      place: 'ordinality',
    })}`
  assert.deepEqual(
    [...found],
    rows.map((row, at) => ({ ...row, at, size: String(row.orgId.length), place: String(at + 1) })),
  )
})

test('no rows are none, and what is left out is null', async () => {
  const none = await sql()`select * from ${unnest(sql(), 't', rows.slice(0, 0), { id: 'text', count: 'int' })}`
  assert.equal(none.length, 0)
  const [row] = await sql()`select * from ${unnest(sql(), 't', [{}] as { id?: string }[], { id: 'text' })}`
  assert.deepEqual(row, { id: null })
})

test('two in one statement, beside other parameters', async () => {
  const some = [{ id: 'b', by: 2 }]
  const found = await sql()`
    select t.id, s.by + ${40}::int as sum
    from ${unnest(sql(), 't', rows, { id: 'text' })}
    join ${unnest(sql(), 's', some, { id: 'text', by: 'int' })} on s.id = t.id
    where t.id <> ${'a'}`
  assert.deepEqual([...found], [{ id: 'b', sum: 42 }])
})

test('the same columns are one statement to the server, however many rows', async () => {
  await sql().begin(async (tx) => {
    for (const part of [rows, rows.slice(1), []])
      await tx`select 'counted' as what from ${unnest(tx, 'counted', part, { id: 'text', count: 'int' })}`
    const [{ n }] = await tx<[{ n: number }]>`
      select count(*)::int as n
      from pg_prepared_statements
      where statement like '%''counted''%' and statement not like '%pg_prepared%'`
    assert.equal(n, 1)
  })
})

test('a column that is no field of its rows, of another type or at the wrong place is refused', () => {
  // @ts-expect-error: no such field
  void unnest(sql(), 't', rows, { name: 'text' })
  // @ts-expect-error: text into a number
  void unnest(sql(), 't', rows, { id: 'int' })
  assert.throws(() => unnest(sql(), 't', rows, { n: 'ordinality', id: 'text' }), /last column/)
  // @ts-expect-error: the other way around
  void unnest(sql(), 't', rows, { count: 'text' })
})
