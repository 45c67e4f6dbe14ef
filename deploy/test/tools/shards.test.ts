import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readShard, shardOf } from '../../tools/shards.ts'
import { LONGEST } from '../../tools/test-groups.ts'
import { testFiles } from '../../tools/tiers.ts'

const storms = testFiles('storm')

test('all parts together are all files, and each file is in one of them', () => {
  for (const total of [1, 2, 3, 7, storms.length, storms.length + 5]) {
    const parts = Array.from({ length: total }, (_, i) => shardOf(storms, { index: i + 1, total }))
    assert.deepEqual(parts.flat().toSorted(), storms, `${total} parts`)
  }
})

test('parts are equally large, and none has all that takes longest', () => {
  const parts = [1, 2, 3].map((index) => shardOf(storms, { index, total: 3 }))
  const spread = (numbers: number[]) => Math.max(...numbers) - Math.min(...numbers)
  assert.ok(spread(parts.map((files) => files.length)) <= 1)
  assert.ok(spread(parts.map((files) => files.filter((file) => LONGEST.has(file)).length)) <= 1)
})

test('a part is asked for by its number and how many there are', () => {
  assert.deepEqual(readShard('2/3'), { index: 2, total: 3 })
  for (const wrong of ['', '2', '0/3', '4/3', '1/0', '1/3/5', 'a/b', '-1/3', '1.5/3', ' 1/3'])
    assert.equal(readShard(wrong), undefined, wrong)
})
