import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareRow, noiseOf, parseRows, sentencesOf } from '../../load/compare.ts'
import type { Row } from '../../load/row.ts'

const aRow = (more: Partial<Row> = {}): Row => ({
  name: 'runs',
  value: 100,
  unit: 'runs/s',
  better: 'higher',
  repeats: [98, 100, 102],
  ...more,
})

test('a rate that fell by more than 5 % is worse, one that grew is not', () => {
  assert.equal(compareRow(aRow({ value: 94 }), aRow()).isWorse, true)
  assert.equal(compareRow(aRow({ value: 96 }), aRow()).isWorse, false)
  assert.equal(compareRow(aRow({ value: 200 }), aRow()).isWorse, false)
})

test('a duration that grew by more than 5 % is worse, one that fell is not', () => {
  const ms = (value: number) => aRow({ unit: 'ms', better: 'lower', value })
  assert.equal(compareRow(ms(106), ms(100)).isWorse, true)
  assert.equal(compareRow(ms(104), ms(100)).isWorse, false)
  assert.equal(compareRow(ms(50), ms(100)).isWorse, false)
})

test('what describes the machine is never worse', () => {
  const bare = (value: number) => aRow({ name: 'bare spawns', better: 'neither', value })
  const { isWorse, change } = compareRow(bare(10), bare(100))
  assert.deepEqual({ isWorse, change }, { isWorse: false, change: -90 })
})

test('an earlier row that does not know its direction is judged by the direction of the new one', () => {
  const { better: _, ...old } = aRow()
  assert.equal(compareRow(aRow({ value: 50 }), old).isWorse, true)
})

test('the noise of both runs is put together', () => {
  assert.equal(noiseOf({ value: 100, repeats: [97, 100, 103] }), 3)
  const after = aRow({ repeats: [97, 100, 103] })
  const before = aRow({ repeats: [96, 100, 104] })
  assert.equal(compareRow(after, before).noise, 5)
})

test('two repeats say nothing about noise', () => {
  assert.equal(noiseOf({ value: 100, repeats: [90, 110] }), undefined)
  assert.equal(noiseOf({ value: 100 }), undefined)
  assert.equal(compareRow(aRow(), aRow({ repeats: [100] })).noise, undefined)
})

test('a row with a ratio to a yardstick is compared by the ratio', () => {
  const row = (value: number, ratio: number) => aRow({ value, ratio: { to: 'skeleton', value: ratio } })
  const slowerMachine = compareRow(row(50, 0.4), row(100, 0.4))
  assert.deepEqual(
    { by: slowerMachine.by, change: slowerMachine.change, isWorse: slowerMachine.isWorse },
    { by: 'ratio', change: 0, isWorse: false },
  )
  assert.equal(compareRow(row(100, 0.3), row(100, 0.4)).isWorse, true)
})

test("a ratio's noise is that of its own repeats, or else that of the value", () => {
  const own = { to: 'bare', value: 0.5, repeats: [0.45, 0.5, 0.55] }
  const row = aRow({ ratio: own })
  assert.equal(Math.round(compareRow(row, row).noise! * 100), Math.round(Math.hypot(10, 10) * 100))
  const borrowed = aRow({ ratio: { to: 'bare', value: 0.5 } })
  assert.equal(Math.round(compareRow(borrowed, borrowed).noise! * 100), Math.round(Math.hypot(2, 2) * 100))
})

test('a ratio to another row of the product is not what is compared', () => {
  const row = (ratio: number) => aRow({ ratio: { to: 'triggered', value: ratio } })
  const { by, isWorse } = compareRow(row(0.5), row(1))
  assert.deepEqual({ by, isWorse }, { by: 'value', isWorse: false })
})

test('a row whose yardstick is new or another one is compared by its value', () => {
  const skeleton = aRow({ ratio: { to: 'skeleton', value: 0.4 } })
  assert.equal(compareRow(skeleton, aRow()).by, 'value')
  assert.equal(compareRow(skeleton, aRow({ ratio: { to: 'bare spawns', value: 4 } })).by, 'value')
})

test("a yardstick's figure behind its name does not make it another one", () => {
  const row = (to: string) => aRow({ ratio: { to, value: 0.4 } })
  assert.equal(compareRow(row('bare'), row('bare (31415)')).by, 'ratio')
})

test('from zero to something is an endless change, from zero to zero is none', () => {
  const commits = (value: number) => aRow({ unit: '', better: 'lower', value })
  assert.deepEqual(compareRow(commits(1), commits(0)).change, Infinity)
  assert.equal(compareRow(commits(1), commits(0)).isWorse, true)
  assert.equal(compareRow(commits(0), commits(0)).change, 0)
})

test('a row without an earlier one, or whose earlier one failed, is new', () => {
  assert.equal(compareRow(aRow(), undefined).earlier, undefined)
  assert.equal(compareRow(aRow(), { name: 'runs', failed: 'the coordinator has ended' }).earlier, undefined)
})

test('what got worse is named by whether its noise explains it', () => {
  const quiet = [99, 100, 101]
  const loud = [50, 100, 150]
  const named = (name: string, repeats?: number[]) =>
    compareRow(aRow({ name, value: 80, repeats }), aRow({ name, repeats }))
  assert.deepEqual(sentencesOf([named('one', quiet), named('two', loud), named('three')], ['four']), [
    'worse by more than 5 %, beyond their noise: one (-20.0 %)',
    'worse by more than 5 %, within their noise: two (-20.0 %)',
    'worse by more than 5 %, with too few repeats to tell their noise: three (-20.0 %)',
    'only in the earlier run: four',
  ])
})

test('it is said when nothing got worse, and which rows are new', () => {
  const comparisons = [compareRow(aRow(), aRow()), compareRow(aRow({ name: 'new' }), undefined)]
  assert.deepEqual(sentencesOf(comparisons, []), ['nothing is worse by more than 5 %', 'only in this run: new'])
})

test('rows are read from between the lines of npm, the last of a name counts', () => {
  const text = ['', '> bench', '> node bench.ts --json', '', ...[1, 2].map((value) => JSON.stringify(aRow({ value })))]
  assert.deepEqual([...parseRows(text.join('\n')).values()], [aRow({ value: 2 })])
})
