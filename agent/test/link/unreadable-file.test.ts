import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, anEntry, aSpool, textsOf } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'

/** In each of so many files one run says a line; run_0 fills them. */
async function saidInFiles(t: TestContext, count: number, unreadableMs?: number) {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const spool = await aSpool(folder, { awayMs: 1, ...(unreadableMs !== undefined && { unreadableMs }) })
  t.after(() => spool.close())
  const say = (run: string, times: number, text: string) => {
    for (let n = 0; n < times; n++) void spool.append(run, 1, [anEntry(text)])
    spool.flush()
  }
  spool.open([['run_0', 1]])
  for (let n = 1; n <= count; n++) {
    spool.open([[`run_${n}`, 1]])
    say(`run_${n}`, 1, String(n))
    if (n < count) say('run_0', 80, 'x'.repeat(60_000))
  }
  const files = readdirSync(path.join(folder, 'spool')).toSorted()
  assert.equal(files.length, count)
  const receiver = aReceiver(spool)
  const received = (run: string) => textsOf(receiver.got.get(`${run}/1`) ?? [])
  return { spool, receiver, received, files: files.map((name) => path.join(folder, 'spool', name)) }
}

/** A folder in its place is never taken for a lost file. */
function makeUnreadable(file: string): void {
  renameSync(file, `${file}.away`)
  mkdirSync(file)
}

function mend(file: string): void {
  rmSync(file, { recursive: true })
  renameSync(`${file}.away`, file)
}

test('what stands in other files is told while some cannot be read, and the rest once it can be', async (t) => {
  const { spool, receiver, received, files } = await saidInFiles(t, 4)
  const unreadable = files.slice(0, 3)
  for (const file of unreadable) makeUnreadable(file)
  receiver.connect()
  await untilPolled('what stands in the last file', () => received('run_4').length === 1)
  for (const file of unreadable) mend(file)
  await untilPolled('what stands in the others', () => {
    for (const { run } of spool.held()) spool.ack(run, 1, received(run).length)
    receiver.upload.settle()
    return received('run_0').length === 240
  })
  assert.equal(receiver.gaps, 0)
})

test('who was set back does not wait for a file of before', async (t) => {
  const { spool, receiver, files } = await saidInFiles(t, 2)
  spool.setBack('run_1', 1, 5)
  void spool.append('run_1', 1, [['end', 1, { how: 'exited', exitCode: 3 }, 0]])
  spool.flush()
  makeUnreadable(files[0]!)
  receiver.connect()
  // A coordinator that was told so much has less of it after all.
  receiver.askAgain('run_1', 3)
  await untilPolled('what is missing is told', () => receiver.gaps > 0)
})

test('several files that are gone count as damage, each in its time', async (t) => {
  const { receiver, files } = await saidInFiles(t, 3, 1_000)
  for (const file of files.slice(0, 2)) rmSync(file)
  receiver.connect()
  await untilPolled('what stood there is missed', () => receiver.gaps === 3)
})

test('what stood in a file that is gone is missed, though later ones cannot be read', async (t) => {
  const { receiver, received, files } = await saidInFiles(t, 3, 0)
  rmSync(files[0]!)
  makeUnreadable(files[1]!)
  receiver.connect()
  await untilPolled('what stood there is missed', () => receiver.gaps === 2)
  await untilPolled('what stands in the last file', () => received('run_3').length === 1)
  assert.deepEqual(received('run_2'), [])
})
