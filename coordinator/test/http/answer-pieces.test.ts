import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partOf } from '../../http/answer-pieces.ts'

test('no more than one piece is made behind the part that is asked for', async () => {
  let made = 0
  let isEnded = false
  async function* pieces() {
    try {
      for (; made < 10; made += 1) yield Buffer.from('abcd')
    } finally {
      isEnded = true
    }
  }
  const part = await Array.fromAsync(partOf(pieces(), { first: 2, last: 7 }))
  assert.equal(Buffer.concat(part).toString(), 'cdabcd')
  assert.deepEqual([made, isEnded], [2, true])
})
