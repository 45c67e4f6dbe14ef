import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Moment, onMoment, probe } from '../probe.ts'
import { announce, moment, until, untilPolled } from './_kit/until.ts'

const soon = (act: () => void) => setImmediate(act)

test('a moment reaches those who listen, with its facts, and nobody afterwards', () => {
  const heard: Moment[] = []
  probe('poll.began', { slots: 1 })
  const stop = onMoment((each) => heard.push(each))
  probe('poll.began', { slots: 2 })
  stop()
  probe('poll.began', { slots: 3 })
  assert.deepEqual(heard, [{ name: 'poll.began', facts: { slots: 2 } }])
})

test('`moment` waits for the one that fits, of those after its call', async () => {
  probe('lease.told', { beat: 2 })
  const second = moment('lease.told', ({ beat }) => beat > 1)
  probe('lease.told', { beat: 1 })
  probe('poll.ended', { offers: 0 })
  probe('lease.told', { beat: 3 })
  assert.deepEqual(await second, { beat: 3 })
})

test('`until` looks after each moment, when the code that announced it has come to its end', async () => {
  let count = 0
  let looks = 0
  soon(() => {
    probe('poll.began', { slots: 1 })
    count = 1
  })
  const found = await until('a first', () => {
    looks += 1
    return count > 0 && count
  })
  assert.deepEqual([found, looks], [1, 2])
  soon(() => {
    count = 2
    announce()
  })
  assert.equal(await until('a second', async () => count > 1 && 'text'), 'text')
})

test('what comes while a check is under way is looked at too', async () => {
  let isThere = false
  const check = async () => {
    const before = isThere
    if (!isThere) probe('poll.began', { slots: 1 })
    isThere = true
    await new Promise((resolve) => setImmediate(resolve))
    return before
  }
  await until('it is there', check)
})

test('a wait in vain says what was waited for, and what is true although nobody has announced it', async () => {
  await assert.rejects(
    until('rain', () => false, { ms: 20, more: () => 'the sky is blue' }),
    /^Error: rain: .*blue$/,
  )
  let looks = 0
  await assert.rejects(
    until('snow', () => (looks += 1) > 1, { ms: 20 }),
    /snow: .*nobody announced it/,
  )
  await assert.rejects(
    untilPolled('hail', () => false, { ms: 20 }),
    /hail: not within 20 ms/,
  )
})

test('what nobody announces is found by looking', async () => {
  let looks = 0
  assert.equal(await untilPolled('the third look', () => (looks += 1) === 3 && looks), 3)
})
