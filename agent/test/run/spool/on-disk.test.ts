import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { aSpool, anEntry, filesOf } from '../../_kit/a-spool.ts'
import { folderTest } from '../../_kit/folder-test.ts'

const RUN_BYTES = 200_000

async function bytesOf(folder: string): Promise<number> {
  const files = await Promise.all((await filesOf(folder)).map((file) => stat(file)))
  return files.reduce((sum, { size }) => sum + size, 0)
}

/** Of the `open` line that a file begins with, and of marks before which nothing stands. */
const BESIDES = 400

folderTest('what counts is what stands on the disk, however few entries are written at once', async (folder) => {
  const spool = await aSpool(folder, { runBytes: RUN_BYTES })
  spool.open([['run_a', 1]])
  let entries = 0
  let held: Promise<void> | undefined
  for (; !held; entries++) {
    held = spool.append('run_a', 1, [anEntry('a line of a child: 文字')])
    spool.mark('run_a', 1, { frames: null, journal: 0, isParked: false })
    spool.flush()
    spool.mark('run_a', 1, { frames: entries, journal: 0, isParked: entries % 2 === 0 })
    spool.flush()
  }
  const onDisk = await bytesOf(folder)
  const { unacknowledged } = spool.stats()
  spool.close()
  assert.ok(onDisk < RUN_BYTES + 2 * BESIDES, `${onDisk} bytes`)
  assert.ok(Math.abs(unacknowledged - onDisk) < BESIDES, `${unacknowledged} of ${onDisk} bytes`)

  const after = await aSpool(folder, { runBytes: RUN_BYTES })
  const left = after.stats().unacknowledged
  after.ack('run_a', 1, entries)
  const stats = after.stats()
  after.close()
  assert.ok(Math.abs(left - onDisk) < BESIDES, `an earlier process left ${left} of ${onDisk} bytes`)
  assert.equal(stats.unacknowledged, 0)
})
