import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, aSpool, anEntry } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'

const MIB = 1024 * 1024
const LINE = 'x'.repeat(1000)
const LINES = 20_000

test('what is not acknowledged waits on disk, not in the memory of the coordinator', async () => {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool)
  const received = () => receiver.got.get('run_a/1')?.length ?? 0
  try {
    spool.open([['run_a', 1]])
    receiver.connect()
    for (let n = 0; n < LINES; n++) {
      void spool.append('run_a', 1, [anEntry(LINE)])
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    spool.flush()
    await until('the window is full', () => received() > 3000)
    const most = (5 * MIB) / LINE.length
    assert.ok(received() < most, `${received()} lines were sent without an answer`)

    // One answer after the other, and never more than a window ahead of it.
    while (received() < LINES) {
      const before = received()
      spool.ack('run_a', 1, before)
      receiver.upload.settle()
      await until('more comes', () => received() > before)
      assert.ok(received() - before < most, `${received() - before} lines came at once`)
    }
    assert.equal(receiver.gaps, 0)
  } finally {
    spool.close()
    await remove()
  }
})
