import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { keepRedactors } from '../../../run/redact/redactor-cache.ts'
import type { SecretValues } from '../../../run/redact/redactor.ts'

const secrets = (values: Record<string, string[]>): SecretValues =>
  new Map(Object.entries(values).map(([name, all]) => [name, new Set(all)]))

test('runs with the same secrets share one redactor, in whatever order they are named', async () => {
  const cache = keepRedactors()
  const first = await cache.of(secrets({ A: ['one-secret', 'another'], B: ['third'] }))
  assert.equal(await cache.of(secrets({ B: ['third'], A: ['another', 'one-secret'] })), first)
  assert.notEqual(await cache.of(secrets({ A: ['one-secret'], B: ['third'] })), first)
  // What is too short is told by its name.
  assert.notEqual(await cache.of(secrets({ C: ['one-secret', 'another'], B: ['third'] })), first)
})

test('the longest unused goes when there are too many, or when they are too large', async () => {
  const cache = keepRedactors(16 * 1024 * 1024)
  const first = await cache.of(secrets({ A: ['secret-0'] }))
  for (let n = 1; n < 32; n++) await cache.of(secrets({ A: [`secret-${n}`] }))
  assert.equal(await cache.of(secrets({ A: ['secret-0'] })), first)
  const second = await cache.of(secrets({ A: ['secret-1'] }))
  await cache.of(secrets({ A: ['one more'] }))
  assert.equal(await cache.of(secrets({ A: ['secret-1'] })), second)
  for (let n = 0; n < 12; n++) await cache.of(secrets({ A: [`${n}${'x'.repeat(64 * 1024)}`] }))
  assert.notEqual(await cache.of(secrets({ A: ['secret-1'] })), second)
})

test('secrets whose characters are written in many ways count with the memory that it takes to find them', async () => {
  const cache = keepRedactors(8 * 1024 * 1024)
  const large = (n: number) => secrets({ A: [`${n}${'é"<'.repeat(2_000)}`] })
  const first = await cache.of(large(0))
  assert.ok(first.bytes > 10 * 8_000, `${first.bytes} bytes`)
  for (let n = 1; n < 8; n++) await cache.of(large(n))
  assert.notEqual(await cache.of(large(0)), first)
})

test('runs that begin at the same time wait for the same redactor', async () => {
  const cache = keepRedactors()
  const large = () => secrets({ A: [randomBytes(48 * 1024).toString('base64')] })
  const one = large()
  const [first, second, other] = await Promise.all([cache.of(one), cache.of(one), cache.of(large())])
  assert.equal(first, second)
  assert.notEqual(first, other)
})
