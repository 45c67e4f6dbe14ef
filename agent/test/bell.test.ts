import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBell } from '../bell.ts'

const never = new AbortController().signal

test('a ring wakes the one who waits, and is kept where nobody does', async () => {
  const bell = createBell()
  const waiting = bell.wait(never)
  bell.ring()
  await waiting
  bell.ring()
  bell.ring()
  await bell.wait(never)
  let isAwake = false
  const last = bell.wait(never).then(() => (isAwake = true))
  await new Promise(setImmediate)
  assert.equal(isAwake, false, 'the rings before were one')
  bell.ring()
  await last
})

test('one whose signal has fired takes no ring from the next', async () => {
  const bell = createBell()
  const over = new AbortController()
  const first = bell.wait(over.signal)
  over.abort()
  const second = bell.wait(never)
  await first
  bell.ring()
  await second
  bell.ring()
  await bell.wait(over.signal)
  await bell.wait(never)
})
