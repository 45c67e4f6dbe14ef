import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepRedactors } from '../../../run/redact/kept-redactors.ts'
import type { SecretValues } from '../../../run/redact/redactor.ts'

const secrets = (values: Record<string, string[]>): SecretValues =>
  new Map(Object.entries(values).map(([name, all]) => [name, new Set(all)]))

test('runs with the same secrets share one redactor, in whatever order they are named', () => {
  const kept = keepRedactors()
  const first = kept.of(secrets({ A: ['one-secret', 'another'], B: ['third'] }))
  assert.equal(kept.of(secrets({ B: ['third'], A: ['another', 'one-secret'] })), first)
  assert.notEqual(kept.of(secrets({ A: ['one-secret'], B: ['third'] })), first)
  // What is too short is told by its name.
  assert.notEqual(kept.of(secrets({ C: ['one-secret', 'another'], B: ['third'] })), first)
})

test('the longest unused goes when there are too many, or when they are too large', () => {
  const kept = keepRedactors()
  const first = kept.of(secrets({ A: ['secret-0'] }))
  for (let n = 1; n < 32; n++) kept.of(secrets({ A: [`secret-${n}`] }))
  assert.equal(kept.of(secrets({ A: ['secret-0'] })), first)
  const second = kept.of(secrets({ A: ['secret-1'] }))
  kept.of(secrets({ A: ['one more'] }))
  assert.equal(kept.of(secrets({ A: ['secret-1'] })), second)
  for (let n = 0; n < 5; n++) kept.of(secrets({ A: [`${n}${'x'.repeat(64 * 1024)}`] }))
  assert.notEqual(kept.of(secrets({ A: ['secret-1'] })), second)
})
