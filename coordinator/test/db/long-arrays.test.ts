import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Database } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'

let database: Database
before(async () => void (database = await testDatabase()))
after(() => database.close())

const MIB = 1024 * 1024

test('texts in arrays come back as they went, whatever they hold', async () => {
  const texts = [
    '',
    '"',
    '\\',
    '\\"',
    'a"b\\c',
    'ä"ö\\ü',
    '\u{1f600}"',
    'NULL',
    '{"a":["b\\n"]}',
    '\t\n\r"',
    '"'.repeat(3000),
  ]
  const [row] = await database.db<[{ texts: string[] }]>`select ${texts}::text[] as texts`
  assert.deepEqual(row.texts, texts)
  const values = texts.map((text) => JSON.stringify({ text }))
  const rows = await database.db<
    { value: string }[]
  >`select value::text as value from unnest(${values}::text[]) t (value)`
  assert.deepEqual(
    rows.map(({ value }) => value),
    values,
  )
})

/** Milliseconds of this process's processor for one array with such a text. */
async function costOf(text: string): Promise<number> {
  const costs: number[] = []
  for (let n = 0; n < 3; n++) {
    const since = process.cpuUsage()
    await database.db`select length((${[text]}::text[])[1])`
    const { user, system } = process.cpuUsage(since)
    costs.push((user + system) / 1000)
  }
  return Math.min(...costs)
}

test('a text of quotes costs no hundred times what one of letters costs', async () => {
  const letters = await costOf('a'.repeat(2 * MIB))
  const quotes = await costOf('\\"'.repeat(MIB))
  assert.ok(quotes < 60 * letters, `${quotes} ms for quotes, ${letters} ms for letters`)
})
