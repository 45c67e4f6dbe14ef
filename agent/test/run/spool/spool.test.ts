import assert from 'node:assert/strict'
import { appendFile, readFile, truncate } from 'node:fs/promises'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, aSpool, anEntry, filesOf, textsOf } from '../../_kit/a-spool.ts'
import { folderTest } from '../../_kit/folder-test.ts'

const END: Entry = ['end', 2, { how: 'returned', outputText: '1' }, 5]

function numbers(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, index) => String(from + index))
}

folderTest('entries are in the files before they are sent', async (folder) => {
  const spool = await aSpool(folder)
  const seen: string[] = []
  spool.onWritten((written) => seen.push(...written.map((each) => each.json)))
  spool.open([['run_a', 1]])
  void spool.append('run_a', 1, [anEntry('hello')])
  await until('it is written', () => seen.length > 0)
  const text = await readFile((await filesOf(folder))[0]!, 'utf8')
  assert.ok(text.includes(seen[0]!))
  spool.close()
})

folderTest('what was not acknowledged is there after a restart, and the numbers go on', async (folder) => {
  const before = await aSpool(folder)
  before.open([
    ['run_a', 1],
    ['run_b', 1],
    ['run_c', 2],
  ])
  void before.append('run_a', 1, numbers(1, 10).map(anEntry))
  void before.append('run_b', 1, [anEntry('1'), END])
  before.flush()
  before.ack('run_b', 1, 2)
  before.close()

  const after = await aSpool(folder)
  assert.deepEqual(after.holds(), [
    ['run_a', 1],
    ['run_c', 2],
  ])
  void after.append('run_a', 1, [anEntry('11'), END])
  after.flush()
  const receiver = aReceiver(after)
  receiver.connect()
  await until('everything came', () => receiver.got.get('run_a/1')?.length === 12)
  assert.deepEqual(textsOf(receiver.got.get('run_a/1')!), numbers(1, 11))
  assert.equal(receiver.gaps, 0)
  after.close()
})

folderTest('a record that was torn by a crash is left out, and what stands before it is kept', async (folder) => {
  const before = await aSpool(folder)
  before.open([['run_a', 1]])
  for (const text of numbers(1, 3)) {
    void before.append('run_a', 1, [anEntry(text)])
    before.flush()
  }
  before.close()
  const file = (await filesOf(folder))[0]!
  const whole = await readFile(file)
  for (const cut of [1, 7, 40]) {
    await truncate(file, whole.length - cut)
    const after = await aSpool(folder)
    assert.ok(after.lines.some((line) => line.name === 'spool.torn'))
    assert.equal(after.find('run_a', 1)?.written, 2)
    after.close()
  }
})

folderTest('a line that a failed write has left behind a torn one counts for nothing', async (folder) => {
  const before = await aSpool(folder)
  before.open([['run_a', 1]])
  for (const text of numbers(1, 2)) {
    void before.append('run_a', 1, [anEntry(text)])
    before.flush()
  }
  before.close()
  const file = (await filesOf(folder))[0]!
  const first = (await readFile(file, 'utf8')).split('\n').find((line) => line.includes(' b run_a'))
  await appendFile(file, `deadbeef b run_a\n${first}\n`)
  const after = await aSpool(folder)
  assert.equal(after.find('run_a', 1)?.written, 2)
  after.close()
})

folderTest('damage in a file does not stop what follows it', async (folder) => {
  const before = await aSpool(folder)
  before.open([['run_a', 1]])
  before.close()
  await appendFile((await filesOf(folder))[0]!, 'deadbeef b run_a 1 1 1 0 {"run":"run_a"}\n')
  const after = await aSpool(folder)
  void after.append('run_a', 1, [END])
  after.flush()
  const receiver = aReceiver(after)
  receiver.connect()
  await until('the end came', () => receiver.got.get('run_a/1')?.length === 1)
  after.close()
})

folderTest('files go when all in them is acknowledged, and a long run is not forgotten with them', async (folder) => {
  const spool = await aSpool(folder)
  spool.open([['run_long', 1]])
  const big = 'x'.repeat(60_000)
  for (let run = 0; run < 300; run++) {
    spool.open([[`run_${run}`, 1]])
    void spool.append(`run_${run}`, 1, [anEntry(big), END])
    spool.flush()
  }
  assert.ok((await filesOf(folder)).length >= 4)
  for (let run = 0; run < 300; run++) spool.ack(`run_${run}`, 1, 2)
  assert.equal((await filesOf(folder)).length, 1)
  spool.close()
  const after = await aSpool(folder)
  assert.deepEqual(after.holds(), [['run_long', 1]])
  after.close()
})

folderTest(
  'a program is held back while its backlog is too large, and goes on when it is acknowledged',
  async (folder) => {
    const spool = await aSpool(folder, { runBytes: 100_000 })
    spool.open([
      ['run_a', 1],
      ['run_b', 1],
    ])
    const entries = Array.from({ length: 20 }, () => anEntry('x'.repeat(10_000)))
    let isFree = false
    const held = spool.append('run_a', 1, entries)
    assert.ok(held, 'run_a has too much')
    const freed = held.then(() => (isFree = true))
    assert.equal(spool.append('run_b', 1, [anEntry('small')]), undefined, 'run_b is not held back for it')
    spool.flush()
    spool.ack('run_a', 1, 2)
    await Promise.resolve()
    assert.equal(isFree, false)
    spool.ack('run_a', 1, 20)
    await freed
    spool.close()
  },
)

folderTest('what is asked for again begins in the middle of a batch where it must', async (folder) => {
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool)
  spool.open([['run_a', 1]])
  void spool.append('run_a', 1, numbers(1, 9).map(anEntry))
  spool.flush()
  receiver.got.set('run_a/1', numbers(1, 4).map(anEntry))
  receiver.connect()
  const held = spool.find('run_a', 1)!
  await until('it is sent', () => held.sent === 9)
  held.sent = 4
  receiver.got.set('run_a/1', numbers(1, 4).map(anEntry))
  receiver.upload.rewind()
  await until('the rest came', () => receiver.got.get('run_a/1')?.length === 9)
  assert.deepEqual(textsOf(receiver.got.get('run_a/1')!), numbers(1, 9))
  assert.equal(receiver.gaps, 0)
  spool.close()
})

folderTest('entries of a placement that is over go nowhere', async (folder) => {
  const spool = await aSpool(folder)
  spool.open([['run_a', 1]])
  void spool.append('run_a', 1, [anEntry('kept back')])
  spool.forget('run_a', 1)
  void spool.append('run_a', 1, [anEntry('late'), END])
  spool.flush()
  assert.deepEqual(spool.holds(), [])
  spool.close()
})

folderTest(
  'what was said before a set-back is not mixed with the end, in this process and in the next',
  async (folder) => {
    const spool = await aSpool(folder)
    spool.open([
      ['run_a', 1],
      ['run_b', 1],
    ])
    // Both stand in one file, and the other one keeps it: its entries were never acknowledged.
    void spool.append('run_a', 1, numbers(1, 10).map(anEntry))
    void spool.append('run_b', 1, [anEntry('1')])
    spool.flush()
    // The coordinator has eight, of which these were never sent from here.
    spool.setBack('run_a', 1, 8)
    void spool.append('run_a', 1, [END])
    spool.flush()
    const had = numbers(1, 8).map(anEntry)
    const comesFrom = async (some: typeof spool) => {
      const receiver = aReceiver(some)
      receiver.got.set('run_a/1', [...had])
      receiver.connect()
      await until('all has come', () => receiver.got.get('run_b/1') && receiver.got.get('run_a/1')!.length > 8)
      assert.deepEqual(receiver.got.get('run_a/1'), [...had, END])
      assert.equal(receiver.gaps, 0)
    }
    await comesFrom(spool)
    spool.close()
    const next = await aSpool(folder)
    await comesFrom(next)
    next.close()
  },
)

folderTest(
  'a placement that comes again under the numbers of a forgotten one is there after a restart',
  async (folder) => {
    const spool = await aSpool(folder)
    spool.open([['run_a', 1]])
    void spool.append('run_a', 1, [anEntry('of before')])
    spool.flush()
    spool.forget('run_a', 1)
    spool.open([['run_a', 1]])
    spool.flush()
    spool.close()
    const next = await aSpool(folder)
    assert.deepEqual(next.holds(), [['run_a', 1]])
    assert.equal(next.find('run_a', 1)!.written, 0)
    next.close()
  },
)

folderTest('what a former placement of the same numbers has said is not sent as of the new one', async (folder) => {
  const spool = await aSpool(folder)
  spool.open([['run_a', 1]])
  void spool.append('run_a', 1, numbers(1, 5).map(anEntry))
  spool.flush()
  spool.forget('run_a', 1)
  spool.open([['run_a', 1]])
  void spool.append('run_a', 1, [anEntry('of now'), END])
  spool.flush()
  const comesFrom = async (some: typeof spool) => {
    const receiver = aReceiver(some)
    receiver.connect()
    await until('the end', () => receiver.got.get('run_a/1')?.at(-1)?.[0] === 'end')
    assert.deepEqual(receiver.got.get('run_a/1'), [anEntry('of now'), END])
    assert.equal(receiver.gaps, 0)
  }
  await comesFrom(spool)
  spool.close()
  const next = await aSpool(folder)
  await comesFrom(next)
  next.close()
})
