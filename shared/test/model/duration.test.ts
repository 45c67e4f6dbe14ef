import assert from 'node:assert/strict'
import { test } from 'node:test'
import { duration, durationMs } from '../../model/duration.ts'

test('durations are read in every unit', () => {
  assert.deepEqual(
    ['500ms', '30s', '5m', '1h', '2d', '1.5h', 250, '0s'].map(durationMs),
    [500, 30_000, 300_000, 3_600_000, 172_800_000, 5_400_000, 250, 0],
  )
})

test('what is no duration is none', () => {
  for (const text of ['', '5', 's', '-1s', '5 s', '1y', '1e3s', -1, 1.5, Number.NaN])
    assert.equal(durationMs(text), undefined)
})

test('bounds are told in words', () => {
  const schema = duration({ min: '1s', max: '5m' })
  assert.equal(schema.parse('1s'), 1_000)
  assert.match(schema.safeParse('6m').error?.message ?? '', /between 1s and 5m/)
  assert.match(schema.safeParse('soon').error?.message ?? '', /write \\"30s\\"/)
})
