import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { openSegments } from '../../../run/spool/segments.ts'
import { aFolder, aLog } from '../../_kit/an-agent.ts'

const FILE = `${'#'.repeat(4 * 1024 * 1024)}\n`
const READS = 20

test('a file that is dropped while it is opened is over', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const segments = openSegments(path.join(folder, 'spool'), () => '', aLog().log)
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

test('a file that cannot be removed stays with those behind it, is told once and tried again', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const spool = path.join(folder, 'spool')
  const { lines, log } = aLog()
  const segments = openSegments(spool, () => '', log)
  t.after(() => segments.close())
  for (let files = 0; files < 3; files++) segments.append(FILE)
  const [first, second, third] = readdirSync(spool).toSorted()
  rmSync(path.join(spool, first!))
  mkdirSync(path.join(spool, first!))
  const { segment } = segments.end()
  for (let times = 0; times < 2; times++) segments.dropBefore(segment)
  assert.deepEqual(readdirSync(spool).toSorted(), [first, second, third])
  assert.deepEqual(
    lines.map(({ name }) => name),
    ['spool.file-stays'],
  )
  // Gone is as good as removed.
  rmdirSync(path.join(spool, first!))
  segments.dropBefore(segment)
  assert.deepEqual(readdirSync(spool), [third])
  assert.equal(segments.oldest().segment, segment)
})
