import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { fork } from 'node:child_process'
import { until } from '@windlass/shared/test/_kit/until.ts'
import type { Spool } from '../../../run/spool/spool.ts'
import { aReceiver, aSpool, anEntry } from '../../_kit/a-spool.ts'
import { folderTest } from '../../_kit/folder-test.ts'
import { aFolder } from '../../_kit/an-agent.ts'
import { aSmallDisk } from '../../_kit/small-disk.ts'

const END: Entry = ['end', 2, { how: 'returned', outputText: '1' }, 5]
const CUT_AFTER_MS = 50
const PHASE: Entry = ['e', 1, 'phase', '{"name":"half-way"}']
const LINE = anEntry('x'.repeat(1_000))

/** Lines, one at a time, each after the program was let go on; until its log is cut. */
async function untilCut(spool: Spool, most = 10_000): Promise<number> {
  for (let count = 1; count <= most; count++) {
    const held = spool.append('run_a', 1, [LINE])
    await held
    if (spool.find('run_a', 1)?.gap) return count
  }
  throw new Error(`nothing was cut of ${most} lines`)
}

interface GapData {
  text: string
  events: number
  bytes: number
}

function gapsIn(entries: readonly Entry[]) {
  const gaps = entries.flatMap((entry) =>
    entry[0] === 'e' && entry[2] === 'log.gap' ? [JSON.parse(entry[3]) as GapData] : [],
  )
  const lines = entries.filter((entry) => entry[0] === 'e' && entry[2] === 'log.stdout').length
  return { gaps, lines, missing: gaps.reduce((sum, { events }) => sum + events, 0) }
}

folderTest(
  'with too much in all, a run waits; then it goes on, and a gap stands where its lines would',
  async (folder) => {
    const spool = await aSpool(folder, { totalBytes: 50_000, cutAfterMs: CUT_AFTER_MS })
    spool.open([['run_a', 1]])
    let count = await untilCut(spool)
    for (let more = 0; more < 100; more++, count++)
      assert.equal(spool.append('run_a', 1, [LINE]), undefined, 'it is not held')
    void spool.append('run_a', 1, [PHASE])
    void spool.append('run_a', 1, [LINE, END])
    spool.flush()
    const receiver = aReceiver(spool)
    receiver.connect()
    const got = await until('the end came', () => {
      const entries = receiver.got.get('run_a/1') ?? []
      return entries.at(-1)?.[0] === 'end' && entries
    })
    const { gaps, lines, missing } = gapsIn(got)
    assert.equal(lines + missing, count + 1, 'nothing is missing that no gap tells of')
    assert.equal(gaps.length, 2)
    assert.deepEqual(
      got.slice(-4).map((entry) => (entry[0] === 'e' ? entry[2] : entry[0])),
      ['log.gap', 'phase', 'log.gap', 'end'],
    )
    assert.match(gaps[0]!.text, /\d+ log lines \(\d+ bytes\) are left out here/)
    assert.equal(gaps[1]!.events, 1)
    spool.close()
  },
)

folderTest('once there is room again the gap is told, and lines are kept as before', async (folder) => {
  const spool = await aSpool(folder, { totalBytes: 50_000, cutAfterMs: CUT_AFTER_MS })
  spool.open([['run_a', 1]])
  await untilCut(spool)
  spool.ack('run_a', 1, spool.find('run_a', 1)!.written)
  assert.equal(spool.find('run_a', 1)?.gap, undefined)
  void spool.append('run_a', 1, [anEntry('after')])
  spool.flush()
  const receiver = aReceiver(spool)
  receiver.connect()
  await until('it came', () => JSON.stringify(receiver.got.get('run_a/1') ?? []).includes('after'))
  spool.close()
})

folderTest('a run that has too much of its own waits, and is not cut', async (folder) => {
  const spool = await aSpool(folder, { runBytes: 20_000, cutAfterMs: CUT_AFTER_MS })
  spool.open([['run_a', 1]])
  let isFree = false
  const held = spool.append('run_a', 1, Array<Entry>(50).fill(LINE))
  assert.ok(held)
  const freed = held.then(() => (isFree = true))
  await new Promise((resolve) => setTimeout(resolve, 3 * CUT_AFTER_MS))
  assert.equal(isFree, false)
  assert.equal(spool.find('run_a', 1)?.gap, undefined)
  spool.flush()
  spool.ack('run_a', 1, 50)
  await freed
  spool.close()
})

folderTest('a gap that is open when the agent is killed is told by its next start', async (folder) => {
  const child = fork(path.join(import.meta.dirname, '../../programs/cut-spool.ts'), [folder, String(CUT_AFTER_MS)])
  const [count] = (await once(child, 'message')) as [number]
  child.kill('SIGKILL')
  await once(child, 'exit')
  const spool = await aSpool(folder)
  assert.ok(spool.find('run_a', 1)?.gap)
  void spool.append('run_a', 1, [END])
  spool.flush()
  const receiver = aReceiver(spool)
  receiver.connect()
  const got = await until('the end came', () => {
    const entries = receiver.got.get('run_a/1') ?? []
    return entries.at(-1)?.[0] === 'end' && entries
  })
  const { gaps, lines, missing } = gapsIn(got)
  assert.equal(gaps.length, 1)
  assert.equal(lines + missing, count)
  const acked = spool.find('run_a', 1)?.written ?? 0
  spool.ack('run_a', 1, acked)
  assert.deepEqual(spool.stats(), { placements: 0, unacknowledged: 0 }, 'what an earlier process had left counts')
  spool.close()
})

test('a full disk costs log lines only, and says how many', async (context) => {
  const { folder, remove } = await aFolder()
  const disk = await aSmallDisk(folder, 1024 * 1024)
  context.after(async () => {
    disk?.remove()
    await remove()
  })
  if (!disk) return context.skip('no file system can be mounted here')
  await writeFile(path.join(disk.folder, 'ballast'), Buffer.alloc(600_000))
  const spool = await aSpool(disk.folder, { cutAfterMs: CUT_AFTER_MS })
  const receiver = aReceiver(spool)
  receiver.connect()
  spool.open([['run_a', 1]])
  const journal: Entry = ['j', 1, '{"op":"a word about the journal"}']
  let count = await untilCut(spool)
  assert.ok(spool.trouble())
  for (let more = 0; more < 200; more++) {
    await spool.append('run_a', 1, [LINE, journal, PHASE])
    count += 1
  }
  // The gap that is open when there is room again must not be lost either.
  for (let more = 0; more < 5; more++, count++) void spool.append('run_a', 1, [LINE])
  await rm(path.join(disk.folder, 'ballast'))
  await until('the disk works', () => !spool.trouble())
  void spool.append('run_a', 1, [anEntry('the last line'), END])
  spool.flush()
  const got = await until('the end came', () => {
    const entries = receiver.got.get('run_a/1') ?? []
    return entries.at(-1)?.[0] === 'end' && entries
  })
  const { gaps, lines, missing } = gapsIn(got)
  assert.ok(gaps.length > 0)
  assert.equal(lines + missing, count + 1)
  assert.equal(got.filter(([kind]) => kind === 'j').length, 200)
  assert.equal(got.filter((entry) => entry[0] === 'e' && entry[2] === 'phase').length, 200)
  assert.equal(receiver.gaps, 0)
  spool.close()
})
