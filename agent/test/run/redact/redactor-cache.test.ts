import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { keepRedactors } from '../../../run/redact/redactor-cache.ts'
import type { SecretValues } from '../../../run/redact/redactor.ts'

const secrets = (values: Record<string, string[]>): SecretValues =>
  new Map(Object.entries(values).map(([name, all]) => [name, new Set(all)]))

function aCache(limits?: Parameters<typeof keepRedactors>[0]) {
  const cache = keepRedactors(limits)
  /** Of a run that has ended by now. */
  async function of(values: SecretValues) {
    const redactor = await cache.hold('run_before', values)
    cache.release('run_before')
    return redactor
  }
  return { cache, of }
}

test('runs with the same secrets share one redactor, in whatever order they are named', async () => {
  const { of } = aCache()
  const first = await of(secrets({ A: ['one-secret', 'another'], B: ['third'] }))
  assert.equal(await of(secrets({ B: ['third'], A: ['another', 'one-secret'] })), first)
  assert.notEqual(await of(secrets({ A: ['one-secret'], B: ['third'] })), first)
  // What is too short is told by its name.
  assert.notEqual(await of(secrets({ C: ['one-secret', 'another'], B: ['third'] })), first)
})

test('the longest unused goes when there are too many, or when they are too large', async () => {
  const { of } = aCache({ unusedBytes: 16 * 1024 * 1024 })
  const first = await of(secrets({ A: ['secret-0'] }))
  for (let n = 1; n < 32; n++) await of(secrets({ A: [`secret-${n}`] }))
  assert.equal(await of(secrets({ A: ['secret-0'] })), first)
  const second = await of(secrets({ A: ['secret-1'] }))
  await of(secrets({ A: ['one more'] }))
  assert.equal(await of(secrets({ A: ['secret-1'] })), second)
  for (let n = 0; n < 12; n++) await of(secrets({ A: [`${n}${'x'.repeat(64 * 1024)}`] }))
  assert.notEqual(await of(secrets({ A: ['secret-1'] })), second)
})

test('secrets whose characters are written in many ways count with the memory that it takes to find them', async () => {
  const { of } = aCache({ unusedBytes: 8 * 1024 * 1024 })
  const large = (n: number) => secrets({ A: [`${n}${'é"<'.repeat(2_000)}`] })
  const first = await of(large(0))
  assert.ok(first!.bytes > 10 * 8_000, `${first!.bytes} bytes`)
  for (let n = 1; n < 8; n++) await of(large(n))
  assert.notEqual(await of(large(0)), first)
})

test('runs that begin at the same time wait for the same redactor', async () => {
  const { cache } = aCache()
  const large = () => secrets({ A: [randomBytes(48 * 1024).toString('base64')] })
  const one = large()
  const [first, second, other] = await Promise.all([
    cache.hold('run_a', one),
    cache.hold('run_b', one),
    cache.hold('run_c', large()),
  ])
  assert.equal(first, second)
  assert.notEqual(first, other)
})

test('a redactor that a run has is shared with all that come, however many others were made since', async () => {
  const { cache, of } = aCache()
  const first = await cache.hold('run_a', secrets({ A: ['secret-a'] }))
  for (let n = 0; n < 40; n++) await of(secrets({ A: [`secret-${n}`] }))
  assert.equal(await cache.hold('run_b', secrets({ A: ['secret-a'] })), first)
  cache.release('run_a')
  for (let n = 0; n < 40; n++) await of(secrets({ A: [`other-${n}`] }))
  assert.equal(await of(secrets({ A: ['secret-a'] })), first)
  cache.release('run_b')
  for (let n = 0; n < 40; n++) await of(secrets({ A: [`third-${n}`] }))
  assert.notEqual(await of(secrets({ A: ['secret-a'] })), first)
})

test('all large ones that runs have take no more than a bound, and small ones always have room', async () => {
  const large = (n: number) => secrets({ A: [`${n}${randomBytes(6_000).toString('base64')}`] })
  const { bytes } = (await aCache().of(large(0)))!
  const limits = { smallBytes: bytes - 50_000, largeBytes: 2 * bytes + 100_000 }
  const bounded = keepRedactors(limits)
  const first = large(1)
  assert.ok(await bounded.hold('run_1', first))
  assert.ok(await bounded.hold('run_2', large(2)))
  assert.equal(await bounded.hold('run_3', large(3)), undefined)
  // The same one again takes nothing, nor has one that has no room taken it from others.
  assert.ok(await bounded.hold('run_4', first))
  for (let n = 0; n < 3; n++) assert.ok(await bounded.hold(`run_small_${n}`, secrets({ A: [`secret-${n}`] })))
  bounded.release('run_1')
  assert.equal(await bounded.hold('run_3', large(3)), undefined)
  bounded.release('run_4')
  assert.ok(await bounded.hold('run_3', large(3)))
  // A program that is there already has its redactor all the same.
  assert.ok(await bounded.holdAnyway('run_5', large(5)))
  bounded.release('run_2')
  assert.equal(await bounded.hold('run_2', large(2)), undefined)
})

/** `made`: how often a redactor was made of them. */
class Counted extends Map<string, ReadonlySet<string>> {
  made = 0

  override values() {
    this.made += 1
    return super.values()
  }
}

test('a large one for which there is no room is not made again, as others wait for what is made', async () => {
  const large = (n: number) => secrets({ A: [`${n}${'é"<'.repeat(2_000)}`] })
  const { bytes } = (await aCache().of(large(0)))!
  const { cache, of } = aCache({ smallBytes: bytes / 2, largeBytes: 1.5 * bytes, unusedBytes: 0 })
  const waiting = new Counted([...large(1)])
  await cache.hold('run_a', large(0))
  assert.equal(await cache.hold('run_b', waiting), undefined)
  await of(secrets({ A: ['one after it'] }))
  const { made } = waiting
  assert.equal(await cache.hold('run_b', waiting), undefined)
  assert.deepEqual([waiting.made, made > 0], [made, true])
  cache.release('run_a')
  assert.ok(await cache.hold('run_b', waiting))
})

test('a run that is gone before its redactor is made leaves its room to others', async () => {
  const large = (n: number) => secrets({ A: [`${n}${'é"<'.repeat(2_000)}`] })
  const { bytes } = (await aCache().of(large(0)))!
  const { cache } = aCache({ smallBytes: 0, largeBytes: 1.5 * bytes })
  const making = cache.hold('run_a', large(0))
  cache.release('run_a')
  await making
  assert.ok(await cache.hold('run_b', large(1)))
})
