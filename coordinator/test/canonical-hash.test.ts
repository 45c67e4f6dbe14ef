import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { canonicalHash } from '../canonical-hash.ts'

const ORG = newId('org')

test('the hash is that of the text with all fields in order', async () => {
  assert.equal((await canonicalHash({ b: 1, a: ['ä'] }, ORG)).digest('hex'), hash('sha256', '{"a":["ä"],"b":1}'))
  assert.equal((await canonicalHash(undefined, ORG)).digest('hex'), hash('sha256', 'undefined'))
})

test('others have their turn while large values are hashed, however many come at once', async () => {
  const value = Array.from({ length: 200_000 }, () => ({ a: {} }))
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const hashes = await Promise.all([
    canonicalHash(value, ORG),
    canonicalHash(value, ORG),
    canonicalHash([...value], ORG),
  ])
  clearImmediate(next)
  assert.ok(turns > 10, `${turns} turns`)
  assert.equal(new Set(hashes.map((one) => one.digest('hex'))).size, 1)
})
