import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, aSpool, anEntry, textsOf } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'

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
