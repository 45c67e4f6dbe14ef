import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createLog } from '@windlass/shared/log.ts'
import { strangerReads } from '../../limits/stranger-reads.ts'
import { refusal } from '../_kit/coordinator.ts'

type Asked = ReturnType<typeof asked>[number]
const log = createLog({}, 'error')
const asked = (count: number) => Array.from({ length: count }, (_, n) => ({ network: `${n}`, n }))

test('each takes two milliseconds, twenty of one statement together', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => 0)
  const reads = strangerReads({
    name: 'test',
    log,
    read: async (all: readonly Asked[]) => [...all],
  })
  assert.equal((await alone(reads.add({ network: 'a', n: 7 }), t)).n, 7)
  let answered = 0
  for (const one of asked(30)) void reads.add(one).then(() => answered++)
  await turns()
  assert.equal(answered, 0)
  t.mock.timers.tick(39)
  await turns()
  assert.equal(answered, 0)
  t.mock.timers.tick(1)
  await turns()
  assert.equal(answered, 20)
  t.mock.timers.tick(20)
  await turns()
  assert.equal(answered, 30)
})

test('who waits for longer than ten seconds is told to come again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const never = new Promise<number[]>(() => {})
  const reads = strangerReads<{ network: string }, number>({ name: 'test', log, read: () => never })
  const late = assert.rejects(reads.add({ network: 'a' }), refusal('UNAVAILABLE'))
  await turns()
  t.mock.timers.tick(10_000)
  await late
})

async function turns(): Promise<void> {
  for (let n = 0; n < 5; n++) await turn()
}

/** Two milliseconds, by the clock of the test. */
async function alone<T>(answer: Promise<T>, t: { mock: { timers: { tick(ms: number): void } } }): Promise<T> {
  await turns()
  t.mock.timers.tick(2)
  return answer
}
