import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepRedactors } from '../../../run/redact/redactor-cache.ts'
import type { SecretValues } from '../../../run/redact/redactor.ts'

const secrets = (values: Record<string, string[]>): SecretValues =>
  new Map(Object.entries(values).map(([name, all]) => [name, new Set(all)]))

test('runs with the same secrets share one redactor, in whatever order they are named', () => {
  const cache = keepRedactors()
  const first = cache.of(secrets({ A: ['one-secret', 'another'], B: ['third'] }))
  assert.equal(cache.of(secrets({ B: ['third'], A: ['another', 'one-secret'] })), first)
  assert.notEqual(cache.of(secrets({ A: ['one-secret'], B: ['third'] })), first)
  // What is too short is told by its name.
  assert.notEqual(cache.of(secrets({ C: ['one-secret', 'another'], B: ['third'] })), first)
})

test('the longest unused goes when there are too many, or when they are too large', () => {
  const cache = keepRedactors()
  const first = cache.of(secrets({ A: ['secret-0'] }))
  for (let n = 1; n < 32; n++) cache.of(secrets({ A: [`secret-${n}`] }))
  assert.equal(cache.of(secrets({ A: ['secret-0'] })), first)
  const second = cache.of(secrets({ A: ['secret-1'] }))
  cache.of(secrets({ A: ['one more'] }))
  assert.equal(cache.of(secrets({ A: ['secret-1'] })), second)
  for (let n = 0; n < 5; n++) cache.of(secrets({ A: [`${n}${'x'.repeat(64 * 1024)}`] }))
  assert.notEqual(cache.of(secrets({ A: ['secret-1'] })), second)
})
