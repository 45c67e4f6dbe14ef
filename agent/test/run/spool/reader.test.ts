// What becomes of the words in a file of the spool that cannot be read while its agent lives.
import assert from 'node:assert/strict'
import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { AgentRefusal } from '../../../exit-codes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, anEntry, aSpool, textsOf } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'

/** Longer than any test. */
const NEVER_MS = 600_000

interface OnDisk {
  spool: Awaited<ReturnType<typeof aSpool>>
  folder: string
  /** What is written is in this file. */
  file: string
}

/** Of run_a two lines are written, of run_b one, and nothing is sent yet. */
function spoolTest(name: string, unreadableMs: number, body: (on: OnDisk) => Promise<void>): void {
  test(name, async (t) => {
    const { folder, remove } = await aFolder()
    const spool = await aSpool(folder, { unreadableMs })
    t.after(async () => {
      spool.close()
      await remove()
    })
    spool.open([
      ['run_a', 1],
      ['run_b', 1],
    ])
    for (const [run, text] of [
      ['run_b', 'b1'],
      ['run_a', 'a1'],
      ['run_a', 'a2'],
    ] as const) {
      void spool.append(run, 1, [anEntry(text)])
      spool.flush()
    }
    const files = readdirSync(path.join(folder, 'spool'))
    assert.equal(files.length, 1)
    await body({ spool, folder, file: path.join(folder, 'spool', files[0]!) })
  })
}

const named = ({ spool }: OnDisk, name: string) => spool.lines.filter((line) => line.name === name)

/** It opens, and each read of it fails with EIO. */
function breakDisk(file: string): void {
  renameSync(file, `${file}.away`)
  symlinkSync('/proc/self/mem', file)
}

/** The text alone: the sums beside it, in hex, may hold the same letters. */
function damage(file: string, text: 'a1' | 'a2'): void {
  writeFileSync(file, readFileSync(file, 'latin1').replace(`"${text}\\`, '"ax\\'))
}

function mend(file: string): void {
  rmSync(file, { force: true })
  renameSync(`${file}.away`, file)
}

for (const [what, spoil] of [
  ['its last line is damaged', (file: string) => damage(file, 'a2')],
  ['it is shorter by a line', (file: string) => truncateSync(file, readFileSync(file).lastIndexOf(10, -2) + 1)],
  ['it is shorter by some bytes', (file: string) => truncateSync(file, readFileSync(file).length - 5)],
] as const)
  spoolTest(`${what}: that is missed at the end of the files`, NEVER_MS, async (on) => {
    spoil(on.file)
    const first = aReceiver(on.spool)
    first.connect()
    await until('the gap', () => first.gaps > 0)
    void on.spool.append('run_b', 1, [anEntry('b2')])
    on.spool.flush()
    first.disconnect()
    // What was written meanwhile stands where it is read.
    for (const receiver of [first, aReceiver(on.spool)]) {
      receiver.connect()
      await until('what follows', () => receiver.got.get('run_b/1')?.length === 2)
      assert.deepEqual(textsOf(receiver.got.get('run_b/1')!), ['b1', 'b2'])
      assert.deepEqual(textsOf(receiver.got.get('run_a/1')!), ['a1'])
      receiver.disconnect()
    }
    assert.equal(named(on, 'spool.torn').length, 1)
  })

spoolTest('what stands behind a damaged line in the same file is told', NEVER_MS, async (on) => {
  damage(on.file, 'a1')
  void on.spool.append('run_b', 1, [anEntry('b2')])
  on.spool.flush()
  const receiver = aReceiver(on.spool)
  receiver.connect()
  await until('what follows', () => receiver.got.get('run_b/1')?.length === 2)
  await until('the gap', () => receiver.gaps > 0)
  assert.equal(receiver.got.get('run_a/1'), undefined)
  on.spool.close()
  const after = await aSpool(on.folder)
  assert.equal(after.find('run_b', 1)?.written, 2)
  after.close()
})

for (const [what, spoil] of [
  ['gone', (file: string) => rmSync(file)],
  ['on a broken part of the disk', breakDisk],
] as const) {
  spoolTest(`a file that is ${what} for long counts as damage`, 0, async (on) => {
    spoil(on.file)
    const receiver = aReceiver(on.spool)
    receiver.connect()
    await until('both are missed', () => receiver.gaps === 2)
    assert.equal(named(on, 'spool.unreadable').length, 1)
    assert.equal(named(on, 'spool.torn').length, 1)
    assert.equal(await on.spool.reader.trouble(), undefined)
  })

  spoolTest(`a file that is ${what} for a moment costs nothing, and that is told meanwhile`, NEVER_MS, async (on) => {
    if (what === 'gone') renameSync(on.file, `${on.file}.away`)
    else breakDisk(on.file)
    const receiver = aReceiver(on.spool)
    receiver.connect()
    await until('it is noticed', () => named(on, 'spool.unreadable').length > 0)
    assert.match((await on.spool.reader.trouble())!, /\.spool cannot be read \((EIO|ENOENT)\): mend that, or move/)
    void on.spool.append('run_b', 1, [anEntry('b2')])
    on.spool.flush()
    mend(on.file)
    await until('all of it', () => receiver.got.get('run_b/1')?.length === 2)
    assert.deepEqual(textsOf(receiver.got.get('run_a/1')!), ['a1', 'a2'])
    assert.deepEqual(textsOf(receiver.got.get('run_b/1')!), ['b1', 'b2'])
    assert.equal(receiver.gaps, 0)
    assert.equal(await on.spool.reader.trouble(), undefined)
    assert.equal(named(on, 'spool.readable').length, 1)
  })
}

spoolTest('a file that somebody may mend is waited for', 0, async (on) => {
  renameSync(on.file, `${on.file}.away`)
  symlinkSync(on.file, on.file)
  const receiver = aReceiver(on.spool)
  receiver.connect()
  await until('it is noticed', () => named(on, 'spool.unreadable').length > 0)
  assert.match((await on.spool.reader.trouble())!, /ELOOP/)
  mend(on.file)
  await until('all of it', () => receiver.got.get('run_a/1')?.length === 2)
  assert.equal(receiver.gaps, 0)
})

spoolTest('who has nothing in a file that cannot be read is not kept waiting by it', NEVER_MS, async (on) => {
  const { spool } = on
  breakDisk(on.file)
  const receiver = aReceiver(spool)
  receiver.connect()
  await until('it is noticed', () => named(on, 'spool.unreadable').length > 0)
  spool.open([['run_c', 1]])
  void spool.append('run_c', 1, [anEntry('c1')])
  spool.flush()
  assert.deepEqual(textsOf(receiver.got.get('run_c/1') ?? []), ['c1'])
  mend(on.file)
  await until('the others', () => receiver.got.get('run_a/1')?.length === 2)
})

spoolTest('a file is not readable because another one is', NEVER_MS, async (on) => {
  const { spool } = on
  breakDisk(on.file)
  await spool.reader.read(spool.reader.oldest())
  void spool.append('run_b', 1, [anEntry('b2')])
  spool.flush()
  const { lines } = await spool.reader.read({ segment: spool.reader.end().segment, offset: 0 })
  assert.ok(lines.some(({ kind }) => kind === 'batch'))
  assert.match((await spool.reader.trouble())!, /cannot be read/)
  assert.deepEqual(named(on, 'spool.readable'), [])
  mend(on.file)
  assert.equal(await spool.reader.trouble(), undefined)
})

spoolTest('a file that nobody asks for any more keeps nobody from work', 0, async (on) => {
  const { spool } = on
  renameSync(on.file, `${on.file}.away`)
  symlinkSync(on.file, on.file)
  const receiver = aReceiver(spool)
  receiver.connect()
  await until('it is noticed', () => named(on, 'spool.unreadable').length > 0)
  receiver.disconnect()
  rmSync(on.file)
  assert.equal(await spool.reader.trouble(), undefined)
})

spoolTest('a start says which file it cannot read', 0, async (on) => {
  on.spool.close()
  rmSync(on.file)
  mkdirSync(path.join(on.file, 'entry'), { recursive: true })
  await assert.rejects(aSpool(on.folder), (error) => {
    assert.ok(error instanceof AgentRefusal)
    assert.ok(error.message.includes(`${on.file} cannot be read (EISDIR)`), error.message)
    return true
  })
})
