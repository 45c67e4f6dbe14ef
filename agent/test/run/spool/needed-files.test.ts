import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NeededFiles } from '../../../run/spool/needed-files.ts'

function files(oldest: number, end: number) {
  const dropped: number[] = []
  const at = (segment: number) => ({ segment, offset: 0 })
  const dropBefore = (segment: number) => void dropped.push(segment)
  return { dropped, needed: new NeededFiles({ oldest: () => at(oldest), end: () => at(end), dropBefore }) }
}

test('a file goes when nobody needs it nor any before it, and the one that is written stays', () => {
  const { dropped, needed } = files(1, 4)
  for (const segment of [1, 2, 2, 3]) needed.need(segment)
  needed.free([2])
  assert.deepEqual(dropped, [1])
  needed.free([1])
  assert.deepEqual(dropped, [1, 2])
  needed.free([2, 3])
  assert.deepEqual(dropped, [1, 2, 4])
})

test('nothing is looked at while there is one file', () => {
  const { dropped, needed } = files(1, 1)
  needed.need(1)
  needed.free([1])
  assert.deepEqual(dropped, [])
})
