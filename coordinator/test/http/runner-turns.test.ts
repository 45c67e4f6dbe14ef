import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createOneByOne } from '../../http/one-by-one.ts'

test('a runner has one request in a turn of the event loop, and others have theirs meanwhile', async () => {
  const turns = createOneByOne()
  const served: string[] = []
  for (const n of [1, 2, 3]) void Promise.resolve(turns.next('a')).then(() => served.push(`a${n}`))
  void Promise.resolve(turns.next('b')).then(() => served.push('b1'))
  await Promise.resolve()
  await Promise.resolve()
  assert.deepEqual(served.toSorted(), ['a1', 'b1'])
  for (let n = 0; n < 5; n++) await setImmediate()
  assert.deepEqual(served.slice(2), ['a2', 'a3'])
  assert.equal(turns.next('a'), undefined)
})
