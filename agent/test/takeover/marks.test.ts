import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { markOfHeld } from '../../takeover/take-back.ts'
import { anEntry, aSpool } from '../_kit/a-spool.ts'

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-marks-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const KNOWN = { frames: 7, journal: 2, isParked: true }

test('how far a program was heard is found again with the entries it belongs to', async (t) => {
  const folder = aFolder(t)
  const run = newId('run')
  const spool = await aSpool(folder)
  spool.open([[run, 1]])
  void spool.append(run, 1, [anEntry('a'), anEntry('b')])
  spool.mark(run, 1, KNOWN)
  spool.flush()
  void spool.append(run, 1, [anEntry('c')])
  spool.flush()
  spool.close()
  const next = await aSpool(folder)
  const held = next.find(run, 1)
  assert.deepEqual(markOfHeld(held), { ...KNOWN, seq: 2 })
  assert.equal(held?.written, 3)
  next.close()
})

test('how far a program was heard that says nothing more is written down as well', async (t) => {
  const folder = aFolder(t)
  const [quiet, gone] = [newId('run'), newId('run')]
  const spool = await aSpool(folder)
  spool.open([
    [quiet, 1],
    [gone, 1],
  ])
  void spool.append(quiet, 1, [anEntry('a')])
  spool.flush()
  spool.mark(quiet, 1, { ...KNOWN, frames: null })
  spool.mark(quiet, 1, KNOWN)
  spool.mark(gone, 1, KNOWN)
  spool.forget(gone, 1)
  // It is on its way at once: an agent that is killed flushes nothing.
  await until('the mark is in the files', () => markOfHeld(spool.find(quiet, 1)))
  const next = await aSpool(folder)
  assert.deepEqual(markOfHeld(next.find(quiet, 1)), { ...KNOWN, seq: 1 })
  assert.equal(next.find(gone, 1), undefined)
  next.close()
  spool.close()
})

test('what is not told again is written at once, also behind what gathers while nobody hears it', async (t) => {
  const [folder, copy] = [aFolder(t), aFolder(t)]
  const [run, other] = [newId('run'), newId('run')]
  const spool = await aSpool(folder)
  spool.open([
    [run, 1],
    [other, 1],
  ])
  for (let n = 0; n < 9; n++) void spool.append(other, 1, [anEntry('x'.repeat(1024 * 1024))])
  spool.mark(run, 1, KNOWN)
  spool.flush()
  void spool.append(run, 1, [anEntry('a line of a frame')])
  spool.mark(run, 1, { ...KNOWN, frames: 8 })
  spool.mark(run, 1, { ...KNOWN, frames: null })
  void spool.append(run, 1, [anEntry('past the frames')])
  spool.mark(run, 1, { ...KNOWN, frames: 8 })
  await nextTurn()
  await nextTurn()
  cpSync(folder, copy, { recursive: true })
  const next = await aSpool(copy)
  assert.equal(next.find(run, 1)?.written, 2)
  next.close()
  spool.close()
})

test('it stands at the head of each file, when those before are gone', async (t) => {
  const folder = aFolder(t)
  const run = newId('run')
  const spool = await aSpool(folder)
  spool.open([[run, 1]])
  void spool.append(run, 1, [anEntry('a')])
  spool.mark(run, 1, KNOWN)
  spool.flush()
  for (let n = 0; n < 90; n++) {
    void spool.append(run, 1, [anEntry('x'.repeat(64 * 1024))])
    spool.flush()
  }
  spool.ack(run, 1, 91)
  assert.ok(spool.reader.oldest().segment > 1, 'the first file is gone')
  spool.close()
  const next = await aSpool(folder)
  assert.deepEqual(markOfHeld(next.find(run, 1)), { ...KNOWN, seq: 1 })
  next.close()
})

test('a program of which that cannot be said, or that has ended, cannot be taken back', async (t) => {
  const folder = aFolder(t)
  const [unsaid, ended, never] = [newId('run'), newId('run'), newId('run')]
  const spool = await aSpool(folder)
  spool.open([
    [unsaid, 1],
    [ended, 1],
    [never, 1],
  ])
  for (const run of [unsaid, ended, never]) void spool.append(run, 1, [anEntry('a')])
  spool.mark(unsaid, 1, KNOWN)
  spool.mark(ended, 1, KNOWN)
  spool.flush()
  spool.mark(unsaid, 1, { ...KNOWN, frames: null })
  void spool.append(unsaid, 1, [anEntry('b')])
  void spool.append(ended, 1, [['end', 1, { how: 'returned', outputText: '1' }, 0]])
  spool.flush()
  spool.close()
  const next = await aSpool(folder)
  for (const run of [unsaid, ended, never]) assert.equal(markOfHeld(next.find(run, 1)), undefined)
  assert.equal(markOfHeld(undefined), undefined)
  next.close()
})
