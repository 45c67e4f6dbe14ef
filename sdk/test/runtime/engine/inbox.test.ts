import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Inbox } from '../../../runtime/engine/inbox.ts'

const aResult = (n: number, result = String(n)) => ({ n, state: 'done', result }) as const

test('results are given in the order in which they became ready, not in that in which they came', () => {
  const inbox = new Inbox()
  for (const n of [1, 2, 3]) inbox.add(aResult(n))
  for (const n of [3, 1]) inbox.makeReady(n)
  assert.deepEqual([...inbox.numbers()], [1, 2, 3])
  assert.deepEqual([inbox.nextReady()?.n, inbox.nextReady()?.n, inbox.nextReady()], [3, 1, undefined])
  assert.equal(inbox.hasReady(), false)
})

test('the first result of an entry counts, also when it has been given', () => {
  const inbox = new Inbox()
  assert.equal(inbox.add(aResult(1, 'first')), true)
  assert.equal(inbox.add(aResult(1, 'second')), false)
  assert.equal(inbox.get(1)?.result, 'first')
  inbox.given(1)
  assert.equal(inbox.has(1), false)
  assert.equal(inbox.add(aResult(1, 'third')), false)
  assert.deepEqual([...inbox.numbers()], [])
})

test('what was given without having come by here is not taken in later', () => {
  const inbox = new Inbox()
  inbox.given(1)
  assert.equal(inbox.add(aResult(1)), false)
})
