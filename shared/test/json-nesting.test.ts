import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nestsDeeper, nestsWithin } from '../json-nesting.ts'

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
