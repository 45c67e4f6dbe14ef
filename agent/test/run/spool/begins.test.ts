// Which placements had not begun when an agent ended, as far as its files prove that.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { appendFile, cp, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { openLine } from '../../../run/spool/line.ts'
import { aSpool, anEntry, filesOf } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'
import { folderTest } from '../../_kit/folder-test.ts'

/** The runs of a spool that had not begun, as the next agent reads it. */
async function unbegunIn(folder: string): Promise<string[]> {
  const spool = await aSpool(folder)
  const unbegun = spool.held().filter(({ isUnbegun }) => isUnbegun)
  spool.close()
  return unbegun.map(({ run }) => run)
}

/** `run_a` may begin, `run_b` may not. */
async function aSpoolOfTwo(folder: string): Promise<void> {
  const spool = await aSpool(folder)
  spool.open([
    ['run_a', 1],
    ['run_b', 1],
  ])
  spool.begin('run_a', 1)
  spool.begin('run_unknown', 1)
  spool.close()
}

folderTest('what may begin is in the files at once, and stays there over any number of files', async (folder) => {
  const sizes = { segmentBytes: 500, chunkBytes: 4096 }
  const spool = await aSpool(folder, { sizes })
  spool.open([
    ['run_a', 1],
    ['run_b', 1],
    ['run_c', 1],
  ])
  spool.begin('run_a', 1)
  for (let n = 0; n < 20; n++) {
    void spool.append('run_c', 1, [anEntry('x'.repeat(100))])
    spool.flush()
    spool.ack('run_c', 1, n + 1)
  }
  // Nothing of it is left in the first file.
  assert.ok((await filesOf(folder)).every((file) => !file.endsWith('0000000001.spool')))
  spool.close()
  // `run_c` has said something.
  assert.deepEqual(await unbegunIn(folder), ['run_b'])
  assert.deepEqual(await unbegunIn(folder), ['run_b'])
})

folderTest('an agent of before reads the lines as they were', async (folder) => {
  await aSpoolOfTwo(folder)
  const [file] = await filesOf(folder)
  const lines = (await readFile(file!, 'utf8')).trimEnd().split('\n')
  assert.match(lines[1]!, /^[0-9a-f]{8} o run_b 1 1 0 [0-9a-f]{16}$/)
  assert.match(lines[2]!, /^[0-9a-f]{8} o run_a 1 1 0$/)
})

folderTest('what an agent of before took, and what was taken in another boot, may have begun', async (folder) => {
  const spool = await aSpool(folder)
  spool.open([['run_a', 1]])
  spool.close()
  const elsewhere = openLine('run_c', 1, { next: 1, unbegunIn: '0123456789abcdef' })
  const [file] = await filesOf(folder)
  await appendFile(file!, openLine('run_b', 1, { next: 1 }) + elsewhere)
  assert.deepEqual(await unbegunIn(folder), ['run_a'])
})

folderTest('what a copy of the folder says may have begun in the original', async (folder) => {
  await aSpoolOfTwo(folder)
  await rename(path.join(folder, 'spool'), path.join(folder, 'original'))
  await cp(path.join(folder, 'original'), path.join(folder, 'spool'), { recursive: true })
  assert.deepEqual(await unbegunIn(folder), [])
  await rm(path.join(folder, 'spool'), { recursive: true })
  await rename(path.join(folder, 'original'), path.join(folder, 'spool'))
  assert.deepEqual(await unbegunIn(folder), ['run_b'])
})

folderTest('a line that cannot be read may be the one that says that they begin', async (folder) => {
  await aSpoolOfTwo(folder)
  const [file] = await filesOf(folder)
  const text = await readFile(file!, 'utf8')
  await writeFile(file!, text.replace(/ o run_a 1 1 0$/m, ' o run_a 1 1 7'))
  assert.deepEqual(await unbegunIn(folder), [])
  await truncate(file!, text.length - 3)
  assert.deepEqual(await unbegunIn(folder), [])
})

folderTest('a placement that is over and comes again has not begun', async (folder) => {
  const spool = await aSpool(folder)
  spool.open([['run_a', 1]])
  spool.begin('run_a', 1)
  spool.forget('run_a', 1)
  spool.open([['run_a', 1]])
  spool.close()
  assert.deepEqual(await unbegunIn(folder), ['run_a'])
})

test('nothing begins that cannot be written down', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const spool = await aSpool(folder)
  spool.open([['run_a', 1]])
  const writing = t.mock.method(fs, 'writeSync', () => {
    throw Object.assign(new Error('ENOSPC: no'), { code: 'ENOSPC' })
  })
  syncBuiltinESMExports()
  t.after(syncBuiltinESMExports)
  assert.throws(() => spool.begin('run_a', 1), /ENOSPC/)
  writing.mock.restore()
  syncBuiltinESMExports()
  assert.equal(spool.find('run_a', 1)?.isUnbegun, true)
  spool.begin('run_a', 1)
  spool.close()
  assert.deepEqual(await unbegunIn(folder), [])
})
