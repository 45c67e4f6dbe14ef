import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSample } from '../../limits/sample.ts'

test('names that were flooded and never come again are forgotten, the oldest first', () => {
  let now = 0
  const sample = createSample(() => now)
  const flood = (name: string) => {
    for (let n = 0; n < 7; n++) sample(name)
  }
  flood('first')
  flood('again')
  for (let n = 0; n < 1998; n++) flood(`address ${n}`)
  now += 1000
  flood('again')
  flood('one more')
  now += 1000
  assert.deepEqual(sample('first'), {})
  assert.deepEqual(sample('address 0'), { unlogged: 2 })
  // Of the second flood; what the first had left out was said by its first line.
  assert.deepEqual(sample('again'), { unlogged: 2 })
})
