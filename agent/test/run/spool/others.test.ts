// What a run has to say stands behind what others have said before.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Spool } from '../../../run/spool/spool.ts'
import { aSpool, anEntry } from '../../_kit/a-spool.ts'
import { aFolder } from '../../_kit/an-agent.ts'

const MANY = 10_000

async function withRun(t: TestContext, more: { awayMs?: number } = {}): Promise<Spool> {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder, more)
  t.after(async () => {
    spool.close()
    await remove()
  })
  spool.open([['run_1', 1]])
  return spool
}

const say = (spool: Spool, count: number) =>
  spool.append('run_1', 1, Array<ReturnType<typeof anEntry>>(count).fill(anEntry('')))

test('a run with many entries under way waits for the half of them, while acknowledgements come', async (t) => {
  const spool = await withRun(t, { awayMs: 600_000 })
  assert.equal(say(spool, 1), undefined)
  spool.flush()
  spool.ack('run_1', 1, 1)
  const waiting = say(spool, MANY)
  assert.ok(waiting)
  spool.flush()
  let isOver = false
  void waiting.then(() => (isOver = true))
  spool.ack('run_1', 1, 4_000)
  await turn()
  assert.equal(isOver, false)
  spool.ack('run_1', 1, 6_000)
  await waiting
  assert.equal(say(spool, 1), undefined)
})

test('it waits for nothing while nobody hears it', async (t) => {
  const spool = await withRun(t)
  assert.equal(say(spool, MANY), undefined)
})

test('it goes on when acknowledgements cease', async (t) => {
  const spool = await withRun(t, { awayMs: 50 })
  assert.equal(say(spool, 1), undefined)
  spool.flush()
  spool.ack('run_1', 1, 1)
  await say(spool, MANY)
  assert.equal(say(spool, MANY), undefined)
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
