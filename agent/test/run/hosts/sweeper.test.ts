import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { HostProcess } from '../../../run/hosts/host-process.ts'
import { createSweeper } from '../../../run/hosts/sweeper.ts'

const FORGOTTEN_MS = 10_000

/** A process that has outlived its first kill, and what its next ones bring. */
function aSurvivor(kills: boolean[], end = () => Promise.resolve(kills.shift() ?? false)) {
  const ended: HostProcess[] = []
  const host = { pid: undefined, enclosure: { end } }
  const sweeper = createSweeper({
    // Nobody has this one.
    markerPrefix: 'sweeper-test',
    isKnown: () => true,
    onEnd: (each) => ended.push(each),
    log: () => undefined,
  })
  mock.timers.enable({ apis: ['setTimeout'] })
  const next = async () => {
    mock.timers.tick(FORGOTTEN_MS)
    await new Promise((resolve) => setImmediate(resolve))
  }
  sweeper.survived(host as unknown as HostProcess)
  return { sweeper, ended, next }
}

test('a program that the kernel takes long to end is no fault of the machine', async (t) => {
  t.after(() => mock.timers.reset())
  const { sweeper, ended, next } = aSurvivor([false, true])
  assert.equal(sweeper.survivors(), 0)
  await next()
  assert.equal(sweeper.survivors(), 0)
  assert.equal(ended.length, 0)
  await next()
  assert.equal(ended.length, 1)
  assert.equal(sweeper.survivors(), 0)
  await sweeper.close()
})

test('one that cannot be ended again and again is, until it has ended', async (t) => {
  t.after(() => mock.timers.reset())
  const { sweeper, ended, next } = aSurvivor([false, false, false, true])
  await next()
  assert.equal(sweeper.survivors(), 0)
  for (let n = 0; n < 2; n++) {
    await next()
    assert.equal(sweeper.survivors(), 1)
  }
  await next()
  assert.equal(ended.length, 1)
  assert.equal(sweeper.survivors(), 0)
  await sweeper.close()
})

test('a try that takes longer than the pause counts once', async (t) => {
  t.after(() => mock.timers.reset())
  const slow = Promise.withResolvers<boolean>()
  let tries = 0
  const { sweeper, next } = aSurvivor([], () => {
    tries += 1
    return slow.promise
  })
  await next()
  for (let n = 0; n < 3; n++) {
    // Others end meanwhile.
    sweeper.later()
    await next()
  }
  assert.equal(tries, 1)
  slow.resolve(false)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(sweeper.survivors(), 0)
  await sweeper.close()
})
