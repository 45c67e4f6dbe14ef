import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { canonicalHash } from '../canonical-hash.ts'

test('the hash is that of the text with all fields in order', async () => {
  assert.equal((await canonicalHash({ b: 1, a: ['ä'] })).digest('hex'), hash('sha256', '{"a":["ä"],"b":1}'))
  assert.equal((await canonicalHash(undefined)).digest('hex'), hash('sha256', 'undefined'))
})

test('others have their turn while large values are hashed, however many come at once', async () => {
  const value = Array.from({ length: 200_000 }, () => ({ a: {} }))
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const hashes = await Promise.all([canonicalHash(value), canonicalHash(value), canonicalHash([...value])])
  clearImmediate(next)
  assert.ok(turns > 10, `${turns} turns`)
  assert.equal(new Set(hashes.map((one) => one.digest('hex'))).size, 1)
})
