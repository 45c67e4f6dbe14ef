import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldPath } from '../field-path.ts'

test('a path reads as one would write it in a program', () => {
  assert.equal(fieldPath(['packages', 3, 'name']), 'packages[3].name')
  assert.equal(fieldPath(['labels', 'my key', 'a']), 'labels["my key"].a')
  assert.equal(fieldPath([0, 'a']), '[0].a')
  assert.equal(fieldPath([]), '')
})

test('of a long name it has the beginning', () => {
  assert.equal(fieldPath(['a', 'x'.repeat(1_000_000)]), `a["${'x'.repeat(200)}…"]`)
  assert.equal(fieldPath(['a', 'x'.repeat(200)]), `a.${'x'.repeat(200)}`)
})
