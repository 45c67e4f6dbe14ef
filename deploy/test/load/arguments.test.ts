import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readArguments } from '../../load/arguments.ts'

const groups = { all: ['events', 'idle', 'skeleton'], usual: ['events', 'idle'] }
const read = (...args: string[]) => readArguments(args, groups)

test('without arguments the usual groups are measured five times', () => {
  assert.deepEqual(read(), { json: false, only: ['events', 'idle'], repeats: 5 })
})

test('a quick bench leaves out what takes minutes', () => {
  assert.deepEqual(read('--quick'), { json: false, only: ['events'], repeats: 3 })
  assert.deepEqual(read('--quick', '--repeats', '1', '--only', 'idle'), { json: false, only: ['idle'], repeats: 1 })
})

test('groups, output and an earlier run are named', () => {
  const asked = read('--json', '--only', 'skeleton,events', '--out', 'new.json', '--compare', 'old.json')
  const only = ['skeleton', 'events']
  assert.deepEqual(asked, { json: true, only, repeats: 5, out: 'new.json', compare: 'old.json' })
})

test('what is not understood is not measured', () => {
  for (const args of [['--only', 'nothing'], ['--repeats', '0'], ['--repeats', 'x'], ['--slow'], ['more'], ['--out']])
    assert.equal(read(...args), undefined, args.join(' '))
})
