import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endOfString, nestsDeeper, nestsWithin } from '../json-nesting.ts'

test('depth counts brackets outside of strings', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  assert.equal(nestsDeeper(nested(10), 10), false)
  assert.equal(nestsDeeper(nested(11), 10), true)
  assert.equal(nestsDeeper(JSON.stringify({ a: `\\"${'['.repeat(50)}` }), 10), false)
  assert.equal(nestsDeeper(`[${'[],'.repeat(50)}[]]`, 10), false)
})

test('a value is measured no deeper than is asked for', () => {
  const deep = JSON.parse('['.repeat(1_000_000) + ']'.repeat(1_000_000)) as unknown
  assert.equal(nestsWithin(deep, 100), false)
  assert.equal(nestsWithin({ a: [{ b: null }], c: 'text' }, 3), true)
  assert.equal(nestsWithin({ a: [{ b: null }] }, 2), false)
  assert.equal(nestsWithin('text', 0), true)
})

test('a string ends at its first quote that nothing escapes', () => {
  for (const value of ['', 'plain', '"', '\\', '\\"', '"'.repeat(50), '\\'.repeat(51), 'a\\"b"\\\\', 'é"\n'])
    for (const behind of ['', ',"next"', '\\"']) {
      const text = JSON.stringify(value)
      assert.equal(endOfString(`[${text}${behind}`, 1), 1 + text.length, text)
    }
  for (const unended of ['"', '"abc', '"abc\\"', '"\\']) assert.equal(endOfString(unended, 0), unended.length, unended)
})

test('so it does however its quotes and backslashes lie', () => {
  let seed = 7
  const random = (most: number) => (seed = (seed * 48_271) % 2_147_483_647) % most
  const parts = ['"', '\\', 'x', 'y'.repeat(40), '"'.repeat(700), '\\'.repeat(300), '\u0001'.repeat(90)]
  for (let n = 0; n < 3000; n++) {
    const content = Array.from({ length: random(12) }, () => parts[random(parts.length)]).join('')
    const text = JSON.stringify(content)
    assert.equal(endOfString(`${text},"z"`, 0), text.length, text)
  }
})
