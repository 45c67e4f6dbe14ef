import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, aSpool, anEntry } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'

const MIB = 1024 * 1024
const LINE = 'x'.repeat(1000)
const LINES = 20_000
/** Lines that fill 4 MiB as they are counted, each with 128 more: no further frame begins then. */
const WINDOW = Math.ceil((4 * MIB) / (JSON.stringify(anEntry(LINE)).length + 128))
/** Commas and heads of batches count too, so that it may be full with some lines less. */
const NEARLY_FULL = Math.floor(0.95 * WINDOW)

test('what is not acknowledged waits on disk, not in the memory of the coordinator', () => sendsByWindows(8 * MIB))

test('what no longer fits into memory is read back from disk only when there is room on the way', () =>
  sendsByWindows(MIB))

async function sendsByWindows(memoryBytes: number): Promise<void> {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool, memoryBytes)
  const received = () => receiver.got.get('run_a/1')?.length ?? 0
  let acked = 0
  let most = 0
  receiver.onFrame = () => (most = Math.max(most, received() - acked))
  try {
    spool.open([['run_a', 1]])
    receiver.connect()
    for (let n = 0; n < LINES; n++) {
      void spool.append('run_a', 1, [anEntry(LINE)])
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    spool.flush()
    // One answer after the other, and never more than a window ahead of it.
    while (received() < LINES) {
      await until('the window is full', () => received() - acked >= Math.min(NEARLY_FULL, LINES - acked))
      acked = received()
      spool.ack('run_a', 1, acked)
      receiver.upload.settle()
    }
    assert.ok(most < WINDOW, `a frame was sent ${most} lines after the last answer`)
    assert.equal(receiver.gaps, 0)
  } finally {
    spool.close()
    await remove()
  }
}
