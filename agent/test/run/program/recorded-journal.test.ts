import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalMessage } from '@windlass/shared/wire/program.ts'
import { JournalSplitter } from '../../../run/program/recorded-journal.ts'

const MIB = 1024 * 1024

function aRecord(n: number, result: string | null, state = 'done') {
  const call = { parent: '', kind: 'step', name: `"{[\\ü${n}`, hash: 'h', occurrence: n, args: '[{"state":"open"}]' }
  return { n, attempt: 1, position: n, drifted: false, ...call, site: '', state, result, delivered: null, n2: [{}, []] }
}

function split(text: string, size = text.length * 3) {
  const splitter = new JournalSplitter()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) splitter.push(bytes.subarray(at, at + size))
  return splitter.end()
}

function read(message: Buffer): unknown[] {
  assert.equal(message.readUInt32LE(), message.length - 4)
  const { t, records } = JSON.parse(message.toString('utf8', 4)) as JournalMessage
  assert.equal(t, 'journal')
  return records
}

test('records reach the process as they are, however their text is cut into reads', () => {
  const results = [
    'null',
    '"',
    '\\',
    '\\"',
    '\u0001'.repeat(300),
    `${'x'.repeat(256)}\\`,
    '"}],[{'.repeat(100),
    'ü'.repeat(200),
  ]
  const records = [...results.map((result, at) => aRecord(at + 1, result)), aRecord(9, null, 'open')]
  for (const text of [JSON.stringify(records), JSON.stringify(records, null, 2)])
    for (const size of [1, 2, 7, 255, 1_000, text.length * 3]) {
      const { messages, completed } = split(text, size)
      assert.deepEqual(messages.flatMap(read), records, `${size} bytes a read`)
      assert.deepEqual(completed, [1, 2, 3, 4, 5, 6, 7, 8])
    }
})

test('a long journal goes in messages of some records each', () => {
  const records = Array.from({ length: 100 }, (_, at) => aRecord(at + 1, 'x'.repeat(at === 50 ? MIB : 20_000)))
  const { messages } = split(JSON.stringify(records), 65_536)
  assert.deepEqual(messages.flatMap(read), records)
  assert.ok(messages.length > 5)
  for (const message of messages) assert.ok(message.length < MIB + 300_000)
})

test('an empty list is no message, and what is no list of records is refused', () => {
  assert.deepEqual(split(' [ ] '), { messages: [], completed: [] })
  for (const text of ['{}', '[1]', '["x"]', 'null', '[]]', '[] []'])
    assert.throws(() => split(text), { name: 'UnreadableJournal' }, text)
})

test('a list that ends in the middle is told from what is no list: it may be whole another time', () => {
  for (const text of ['', '[', '[{"n":1}', '[{"n":1},'])
    assert.throws(() => split(text), /the journal has ended in the middle/, text)
})
