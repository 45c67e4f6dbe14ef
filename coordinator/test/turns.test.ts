import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns } from '../turns.ts'

const anybody = () => true

test('each org has its turn, however much another has brought', () => {
  const turns = createTurns<string>()
  for (const n of [1, 2, 3]) turns.add('a', `a${n}`)
  turns.add('b', 'b1')
  turns.add('c', 'c1')
  turns.add('b', 'b2')
  const order = Array.from({ length: 7 }, () => turns.take(anybody))
  assert.deepEqual(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined])
})

test('an org that may not is passed over and keeps its place', () => {
  const turns = createTurns<string>()
  turns.add('a', 'a1')
  turns.add('b', 'b1')
  assert.equal(
    turns.take((org) => org !== 'a'),
    'b1',
  )
  assert.equal(turns.waiting('a'), 1)
  assert.equal(turns.take(anybody), 'a1')
})

test('what is taken out at once is all that waited', () => {
  const turns = createTurns<string>()
  turns.add('a', 'a1')
  turns.add('b', 'b1')
  assert.deepEqual(turns.drain(), ['a1', 'b1'])
  assert.equal(turns.waiting('a'), 0)
  assert.equal(turns.take(anybody), undefined)
})
