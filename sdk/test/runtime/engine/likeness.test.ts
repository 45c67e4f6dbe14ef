import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from '../../../runtime/engine/call.ts'
import { createLikeness } from '../../../runtime/engine/likeness.ts'

const key = { parent: '', kind: 'child', name: 'pay', hash: '', occurrence: 1 } as const
const aCall = (args: string, more: object = {}) => ({ ...key, args, ...more }) as unknown as Call
const anEntry = (n: number, args: string, more: object = {}) =>
  ({ ...key, n, position: n, args, ...more }) as unknown as JournalRecord

/** Binds one after the other, and answers which entry each call got. */
function bound(calls: readonly Call[], entries: readonly JournalRecord[]): Map<Call, number> {
  const got = new Map<Call, number>()
  const taken = new Set<number>()
  const nearest = createLikeness(entries, ({ n }) => !taken.has(n))
  for (;;) {
    const found = nearest(calls.filter((call) => !got.has(call)))
    if (!found) return got
    got.set(found.call, found.record.n)
    taken.add(found.record.n)
  }
}

test('calls get the entries whose arguments share most words with theirs, and equal ones in their order', () => {
  const calls = [aCall('order b at 2000'), aCall('order a at 2000'), aCall('order c at 2000')]
  const entries = [anEntry(1, 'order a at 1000'), anEntry(2, 'order b at 1000'), anEntry(3, 'order x at 1000')]
  assert.deepEqual([...bound(calls, entries).values()].length, 3)
  assert.deepEqual(
    calls.map((call) => bound(calls, entries).get(call)),
    [2, 1, 3],
  )
})

test('a word counts as often as both have it', () => {
  const [call] = [aCall('pay pay pay')]
  assert.deepEqual([...bound([call], [anEntry(1, 'pay once'), anEntry(2, 'pay pay')]).values()], [2])
})

test('what is called otherwise, or elsewhere, is no candidate', () => {
  const entries = [
    anEntry(1, 'a', { name: 'refund' }),
    anEntry(2, 'a', { parent: '/x#1' }),
    anEntry(3, 'a', { kind: 'input' }),
  ]
  assert.equal(bound([aCall('a')], entries).size, 0)
})

// With each pair compared anew for each binding these took hours of a processor.
test('a thousand and more calls with other arguments find their entries', () => {
  const text = 'some words in the text of an order '.repeat(10)
  for (const count of [400, 1100]) {
    const calls = Array.from({ length: count }, (_, i) => aCall(`${i} at 2000 ${text}`))
    const entries = Array.from({ length: count }, (_, i) => anEntry(i + 1, `${i} at 1000 ${text}`))
    const got = bound(calls, entries)
    assert.deepEqual(
      calls.map((call) => got.get(call)),
      entries.map(({ n }) => n),
    )
  }
})

test('what is called otherwise does not keep calls from being compared', () => {
  const others = Array.from({ length: 20_000 }, (_, i) => anEntry(i + 101, '', { kind: 'step', name: 'work' }))
  const entries = Array.from({ length: 60 }, (_, i) => anEntry(i + 1, `order ${59 - i} at 1000`))
  const calls = Array.from({ length: 60 }, (_, i) => aCall(`order ${i} at 2000`))
  const got = bound(calls, [...entries, ...others])
  assert.deepEqual(
    calls.map((call) => got.get(call)),
    calls.map((_, i) => 60 - i),
  )
})
