import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recent } from '../recent.ts'

test('of many things the last are kept, half of the bound at least and never more than it', () => {
  const kept = recent<number>(100)
  for (let n = 0; n < 1000; n++) kept.set(`k${n}`, n)
  // The newest first: a look keeps what it finds.
  let n = 999
  while (kept.get(`k${n}`) === n) n--
  const found = 999 - n
  assert.ok(found >= 50 && found <= 100, `${found} are kept`)
  for (; n >= 0; n--) assert.equal(kept.get(`k${n}`), undefined)
})

test('what is used again and again stays', () => {
  const kept = recent<string>(10)
  kept.set('used', 'yes')
  for (let n = 0; n < 1000; n++) {
    kept.set(`k${n}`, 'no')
    assert.equal(kept.get('used'), 'yes')
  }
})

test('the last value of a name is the one that is found', () => {
  const kept = recent<number>(4)
  kept.set('a', 1)
  for (const name of ['b', 'c']) kept.set(name, 0)
  kept.set('a', 2)
  kept.set('d', 0)
  assert.equal(kept.get('a'), 2)
})
