import assert from 'node:assert/strict'
import { test } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aSpool, anEntry } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'

const RUNS = 8
const EVENTS = 100_000
/** The entries alone are 20 MiB of text; held as objects they would be several times that. */
const MOST_MIB = 150

test('memory stays bounded while nothing is acknowledged', async (t) => {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  let [appended, written] = [0, 0]
  spool.onWritten((batches) => {
    for (const each of batches) written += each.last - each.first + 1
  })
  try {
    const runs = Array.from({ length: RUNS }, (_, n) => `run_${n}`)
    spool.open(runs.map((run) => [run, 1] as const))
    const before = process.memoryUsage().rss
    for (let n = 0; n < EVENTS / RUNS / 10; n++) {
      for (const run of runs) {
        const entries = Array.from({ length: 10 }, (_, k) => anEntry(`line ${n * 10 + k} ${'x'.repeat(80)}`))
        void spool.append(run, 1, entries)
        appended += entries.length
      }
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
      // What waits for a slow disk is not what is measured here.
      if (n % 100 === 0) await untilPolled('the disk to keep up', () => written === appended)
    }
    spool.flush()
    await untilPolled('everything to be written', () => written === EVENTS)
    const grownMiB = Math.round((process.memoryUsage().rss - before) / 1024 / 1024)
    t.diagnostic(`resident memory grew by ${grownMiB} MiB`)
    assert.ok(grownMiB < MOST_MIB, `${grownMiB} MiB`)
  } finally {
    spool.close()
    await remove()
  }
})
