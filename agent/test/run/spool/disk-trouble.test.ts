import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { diskTrouble } from '../../../disk-full.ts'
import { lockState } from '../../../state-lock.ts'
import { aSpool, anEntry } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'
import { aSmallDisk } from '../../_kit/small-disk.ts'

const failure = (code: string, file = '') => Object.assign(new Error(`${code}: no`), { code, path: file })

test('a disk that takes nothing is told as what it is, and as what it has become', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const spool = await aSpool(folder)
  t.after(() => spool.close())
  spool.open([['run_a', 1]])
  let code = ''
  const writing = t.mock.method(fs, 'writeSync', () => {
    throw failure(code)
  })
  syncBuiltinESMExports()
  const mend = () => {
    writing.mock.restore()
    syncBuiltinESMExports()
  }
  t.after(mend)
  void spool.append('run_a', 1, [anEntry('a line')])
  for (const [next, trouble] of [
    ['ENOSPC', /takes no more: make room on it\.$/],
    ['EDQUOT', /takes no more: make room on it\.$/],
    ['EROFS', /is read-only\. Mount it for writing; .* the log of the kernel says why it is\.$/],
    ['EIO', /nothing can be written into .* \(EIO\): mend its disk/],
  ] as const) {
    code = next
    spool.flush()
    assert.match(spool.trouble() ?? '', trouble)
  }
  mend()
  spool.flush()
  await until('the disk works', () => !spool.trouble())
})

test('a start on a read-only disk says so, and nothing of disks that are read-only by intent', async (t) => {
  const { folder, remove } = await aFolder()
  const disk = await aSmallDisk(folder, 1024 * 1024)
  t.after(async () => {
    disk?.remove()
    await remove()
  })
  const sentence = new RegExp(`^The disk of .* is read-only\\. Mount it for writing.* set HOME to a folder elsewhere`)
  const inside = new Error('could not begin', { cause: failure('EROFS', '/home/agent/agent.lock.1') })
  assert.match(diskTrouble(inside, '/home/agent', 'HOME')!, sentence)
  assert.equal(diskTrouble(failure('EROFS', '/sys/fs/cgroup/x'), '/home/agent', 'HOME'), undefined)
  assert.equal(diskTrouble(failure('EACCES', '/home/agent/x'), '/home/agent', 'HOME'), undefined)
  assert.match(diskTrouble(failure('ENOSPC'), '/home/agent', 'HOME')!, /is full\. Make room there/)
  if (!disk) return t.skip('no file system can be mounted here')
  const home = path.join(disk.folder, 'home')
  await mkdir(home)
  execFileSync('mount', ['-o', 'remount,ro', disk.folder])
  await assert.rejects(lockState(home), (error) => sentence.test(diskTrouble(error, home, 'HOME') ?? ''))
})
