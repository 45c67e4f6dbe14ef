import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aReceiver, aSpool, anEntry, textsOf } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'
import { until } from '../_kit/until.ts'

const RUNS = 8
const EVENTS = 100_000

test('100,000 events pass in a second or two, and memory stays bounded while nothing is acknowledged', async (context) => {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const sent = { bytes: 0, events: 0 }
  spool.onWritten((written) => {
    for (const each of written) sent.events += each.last - each.first + 1
  })
  try {
    const runs = Array.from({ length: RUNS }, (_, n) => `run_${n}`)
    spool.open(runs.map((run) => [run, 1] as const))
    const rssBefore = process.memoryUsage().rss
    const from = performance.now()
    for (let n = 0; n < EVENTS / RUNS / 10; n++) {
      for (const run of runs)
        void spool.append(
          run,
          1,
          Array.from({ length: 10 }, (_, k) => anEntry(`line ${n * 10 + k} ${'x'.repeat(80)}`)),
        )
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    spool.flush()
    await until('everything is written', () => sent.events === EVENTS)
    const perSecond = Math.round(EVENTS / ((performance.now() - from) / 1000))
    const grownMiB = Math.round((process.memoryUsage().rss - rssBefore) / 1024 / 1024)
    context.diagnostic(`${perSecond} events/s into the spool, resident memory grew by ${grownMiB} MiB`)
    assert.ok(perSecond > 30_000, `${perSecond} events/s`)
    assert.ok(grownMiB < 150, `${grownMiB} MiB`)
  } finally {
    spool.close()
    await remove()
  }
})

test('a connection that stops taking more gets the rest from the files, complete and in order', async () => {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool, 64 * 1024)
  try {
    spool.open([['run_a', 1]])
    receiver.connect()
    receiver.block(true)
    const total = 5_000
    for (let n = 0; n < total; n++) {
      void spool.append('run_a', 1, [anEntry(`${n} ${'x'.repeat(100)}`)])
      if (n % 50 === 0) spool.flush()
    }
    spool.flush()
    assert.ok((receiver.got.get('run_a/1')?.length ?? 0) < total)
    receiver.block(false)
    await until('everything came', () => receiver.got.get('run_a/1')?.length === total)
    assert.deepEqual(
      textsOf(receiver.got.get('run_a/1')!).map((text) => Number.parseInt(text, 10)),
      Array.from({ length: total }, (_, n) => n),
    )
    assert.equal(receiver.gaps, 0)
  } finally {
    spool.close()
    await remove()
  }
})
