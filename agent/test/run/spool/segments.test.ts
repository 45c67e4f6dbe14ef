import assert from 'node:assert/strict'
import { test } from 'node:test'
import path from 'node:path'
import { openSegments } from '../../../run/spool/segments.ts'
import { aFolder } from '../../_kit/an-agent.ts'

const FILE = `${'#'.repeat(4 * 1024 * 1024)}\n`
const READS = 20

test('a file that is dropped while it is opened is over', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const segments = openSegments(path.join(folder, 'spool'), () => '')
  t.after(() => segments.close())
  for (let reads = 0; reads < READS; reads++) {
    const { segment } = segments.append(FILE)
    const { segment: following } = segments.append('\n')
    // More at once than there are threads: some are opened only when their file is gone.
    const reading = Array.from({ length: READS }, () => segments.read({ segment, offset: 0 }))
    segments.dropBefore(following)
    for (const { next } of await Promise.all(reading)) assert.ok(next.segment <= following)
  }
})
