// A race whose winner did work between its steps that is no step.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { aHost, opened, ops, recordsOf } from './host-process.ts'

/** The hour was over when the order had been paid for. */
const body = `
  const done: string[] = []
  const pay = async () => {
    await step('reserve', () => void done.push('reserved'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    await step('charge', () => void done.push('charged'))
    return 'paid'
  }
  const first = await Promise.race([pay(), sleep('1h').then(() => 'late')])
  if (first === 'late') {
    await step('release', () => void done.push('released'))
    return done
  }
  await step('ship', () => void done.push('shipped'))
  try { await sleep('2h') } catch (error) { done.push((error as Error).name) }
  return done`

/** What is recorded when it waits for two hours. */
async function recorded(t: TestContext): Promise<JournalRecord[]> {
  const host = await aHost(t, body)
  host.start()
  const hour = (await opened(host)).entry
  for (let closed = 0; closed < 3;) {
    if ((await host.nextOp()).op !== 'close') continue
    closed += 1
    host.send({ t: 'kept', count: ops(host).length })
  }
  await host.next('park')
  host.send({ t: 'wake', completions: [{ n: hour.n, state: 'done', result: 'null' }] })
  await host.next('park')
  return recordsOf(host)
}

test('a run that is cancelled amid that work keeps the winner, also told before it stands there', async (t) => {
  const journal = await recorded(t)
  assert.deepEqual(
    journal.map(({ kind, name, delivered }) => `${kind} ${name} ${delivered}`),
    ['sleep  4', 'step reserve 1', 'step charge 2', 'step ship 3', 'sleep  null'],
  )
  const host = await aHost(t, body)
  host.start({ journal, replay: true })
  await host.next('begun')
  host.send({ t: 'cancel', why: 'cancelled', reason: '', graceMs: 400 })
  assert.deepEqual(JSON.parse(await host.next('returned')), ['CancelledError'])
})

test('the next attempt keeps the winner', async (t) => {
  const journal = (await recorded(t)).map((each) => ({ ...each, lost: true }))
  const host = await aHost(t, body)
  host.start({ journal, attempt: 2, entries: 5 })
  const adopted: number[] = []
  while (!adopted.includes(5)) {
    const op = await host.nextOp()
    assert.ok(op.op === 'adopt' || op.op === 'deliver', JSON.stringify(op))
    if (op.op === 'adopt') adopted.push(op.n)
  }
  assert.deepEqual(adopted, [1, 2, 3, 4, 5])
})
