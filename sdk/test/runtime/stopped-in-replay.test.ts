import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { aHost, aRecord, opened, ops, recordsOf } from './host-process.ts'

/** `before`: what the program does before its first step. */
const paying = (before: string) => `
  const done: unknown[] = []
  ${before}
  await step('charge', () => void done.push('charged'))
  try { await sleep('1h') } catch (error) { await step('refund', () => void done.push('refunded')); throw error }
  await step('ship', () => void done.push('shipped'))
  done.push(context.signal.aborted)
  try { await sleep('2h') } catch (error) {
    done.push((error as Error).name, context.signal.aborted)
    await step('tell', () => void done.push('told'))
  }
  return done`

const BUSY = 'await new Promise((resolve) => setTimeout(resolve, 300))'
const ALL_GRACE = { t: 'cancel', why: 'cancelled', reason: '', graceMs: 20_000 } as const

/** What is recorded when it waits for its second sleep. */
async function recorded(t: TestContext): Promise<JournalRecord[]> {
  const host = await aHost(t, paying(''))
  host.start()
  for (let waits = 0; waits < 2;) {
    const op = await host.nextOp()
    if (op.op === 'close') host.send({ t: 'kept', count: ops(host).length })
    if (op.op !== 'open') continue
    waits += 1
    await host.next('park')
    if (waits === 1) host.send({ t: 'wake', completions: [{ n: op.entry.n, state: 'done', result: 'null' }] })
  }
  return recordsOf(host)
}

test('a run that is cancelled amid a replay hears of it where it stood, and does nothing twice', async (t) => {
  const journal = await recorded(t)
  assert.deepEqual(
    journal.map(({ kind, state }) => `${kind} ${state}`),
    ['step done', 'sleep done', 'step done', 'sleep open'],
  )
  const host = await aHost(t, paying(BUSY))
  host.start({ journal, replay: true })
  await host.next('begun')
  host.send(ALL_GRACE)
  assert.deepEqual(JSON.parse(await host.next('returned')), [false, 'CancelledError', true, 'told'])
  assert.ok(!host.seen.some(({ name }) => name === 'park'))
})

test('one whose replay waits for that very word hears of it after half of the grace', async (t) => {
  const journal = await recorded(t)
  const waitForTheSignal = `
    const busy = setInterval(() => {}, 1_000)
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
    clearInterval(busy)`
  const host = await aHost(t, paying(waitForTheSignal))
  host.start({ journal, replay: true })
  await host.next('begun')
  host.send({ ...ALL_GRACE, graceMs: 400 })
  assert.deepEqual(JSON.parse(await host.next('returned')), [true, 'CancelledError', true, 'told'])
})

test('one that is cancelled in its next attempt is given what the last one has done', async (t) => {
  const journal = await recorded(t)
  const host = await aHost(t, paying(BUSY))
  host.start({ journal, attempt: 2, entries: 4 })
  await host.next('begun')
  host.send(ALL_GRACE)
  assert.deepEqual(JSON.parse(await host.next('returned')), [true, 'CancelledError', true, 'told'])
})

test('a step of a replay that fails the second time is given to a program that is cancelled', async (t) => {
  const body = `
    const failing = async () => { ${BUSY}; throw new Error('not again') }
    return step('outer', failing).catch((error) => error.message)`
  const first = await aHost(t, `await step('outer', () => requestInput({ prompt: 'inner?' }))`)
  first.start()
  const entries = [(await opened(first)).entry, (await opened(first)).entry]
  const host = await aHost(t, body)
  host.start({ journal: entries.map((entry) => aRecord(entry)), replay: true })
  await host.next('begun')
  host.send(ALL_GRACE)
  assert.equal(await host.next('returned'), '"not again"')
})
