import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findingsText, worthAgain } from '../../tools/again.ts'

const result = (file: string, failed: number) => ({ file, ms: 1, tests: 2, failed })
const plain = () => 'test'
const FILES = ['a', 'b', 'c', 'd', 'e']
const redIn = (red: readonly string[]) => ({
  results: FILES.map((file) => result(file, red.includes(file) ? 1 : 0)),
  hasFailed: red.length > 0,
})

test('red files, and those that did not end, are executed again', () => {
  assert.deepEqual(worthAgain(redIn(['b', 'd']), FILES, plain), ['b', 'd'])
  assert.deepEqual(worthAgain({ results: [result('a', 0)], hasFailed: false }, ['a', 'b'], plain), ['b'])
})

test('nothing is, when a random file is red, more than three are, or something outside of files', () => {
  const text = (file: string) => (file === 'b' ? `import { repeatable } from '../_kit/repeated.ts'` : 'test')
  assert.deepEqual(worthAgain(redIn(['a', 'b']), FILES, text), [])
  assert.deepEqual(worthAgain(redIn(['a', 'c']), FILES, text), ['a', 'c'])
  assert.deepEqual(worthAgain(redIn(['a', 'b', 'c', 'd']), FILES, plain), [])
  assert.deepEqual(worthAgain({ ...redIn([]), hasFailed: true }, FILES, plain), [])
})

test('files of a group that one of them has ended before their turn are executed again with it', () => {
  const text = (file: string) => (file === 'b' ? `import { repeatable } from '../_kit/repeated.ts'` : 'test')
  const results = FILES.map((file) => ({ ...result(file, 1), ms: file === 'a' ? 1 : 0 }))
  assert.deepEqual(worthAgain({ results, hasFailed: true }, FILES, text), FILES)
})

test('what was red is told with its errors', () => {
  const failure = { file: 'a.test.ts', name: 'it works', text: 'Error: no\n  at b' }
  assert.equal(
    findingsText([failure], ['a.test.ts'], false),
    'Red at first, then green alone, which is a finding: a.test.ts\n\na.test.ts: it works\n  Error: no\n    at b',
  )
  assert.match(findingsText([failure], ['a.test.ts'], true), /^Red at first, then red once more, alone: a.test.ts\n/)
  assert.match(findingsText([failure], [], true), /^Red:\n\na.test.ts: it works\n/)
})
