import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { createOrgCache } from '../../limits/org-cache.ts'

const LONG_MS = 60_000

test('an org that fills it makes room for others by what it had first', () => {
  const cache = createOrgCache<number>({ max: 100, ttlMs: LONG_MS })
  for (let n = 0; n < 10; n++) cache.set('b', `${n}`, n)
  for (let n = 0; n < 1000; n++) cache.set('a', `${n}`, n)
  const left = (org: string) => Array.from({ length: 1000 }, (_, n) => n).filter((n) => cache.get(org, `${n}`) === n)
  assert.deepEqual(left('b').length, 10)
  assert.deepEqual([left('a').length, left('a')[0]], [90, 910])
})

test('what is set anew counts once, and comes last', () => {
  const cache = createOrgCache<string>({ max: 2, ttlMs: LONG_MS })
  for (const key of ['x', 'y', 'x', 'z']) cache.set('a', key, key)
  assert.deepEqual(
    ['x', 'y', 'z'].map((key) => cache.get('a', key)),
    ['x', undefined, 'z'],
  )
})

test('it is forgotten after its time, by its key, and with its org', async () => {
  const cache = createOrgCache<string>({ max: 10, ttlMs: LONG_MS })
  const short = createOrgCache<string>({ max: 10, ttlMs: 1 })
  short.set('a', 'x', '1')
  await pause(2)
  assert.equal(short.get('a', 'x'), undefined)
  cache.set('a', 'x', '1')
  cache.drop('a', 'x', 'another')
  assert.equal(cache.get('a', 'x'), '1')
  cache.drop('a', 'x', '1')
  assert.equal(cache.get('a', 'x'), undefined)
  for (const org of ['a', 'b']) cache.set(org, 'y', '2')
  cache.forget('a')
  assert.deepEqual([cache.get('a', 'y'), cache.get('b', 'y')], [undefined, '2'])
})
