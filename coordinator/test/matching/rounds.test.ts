// A pool that is looked through in pieces gives out what a pool would that is looked at as a whole.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import type { QueueHead } from '../../matching/candidate.ts'
import { match } from '../../matching/match.ts'
import { type ModelRun, type ModelRunner, PoolModel } from '../_kit/pool-model.ts'

const LABELS = ['arm', 'eu', 'gpu']
const labels = fc.subarray(LABELS)
const aRunner = fc.record({ slots: fc.integer({ min: 1, max: 6 }), labels }) satisfies fc.Arbitrary<ModelRunner>
const aRun = fc.record({
  slots: fc.constantFrom(1, 1, 1, 2, 3, 4, 6),
  labels,
  priority: fc.constantFrom(0, 0, 0, 5),
  isResume: fc.constantFrom(false, false, false, true),
  isOld: fc.boolean(),
}) satisfies fc.Arbitrary<ModelRun>

/** What happens in a pool; a number chooses among the runs or runners that are there. */
const anAct = fc.oneof(
  { arbitrary: aRun.map((run) => ({ act: 'enqueue' as const, run })), weight: 6 },
  { arbitrary: fc.nat().map((which) => ({ act: 'end' as const, which })), weight: 3 },
  { arbitrary: fc.nat().map((which) => ({ act: 'cancel' as const, which })), weight: 1 },
  { arbitrary: fc.nat().map((which) => ({ act: 'grow old' as const, which })), weight: 2 },
  { arbitrary: fc.nat().map((which) => ({ act: 'close or open' as const, which })), weight: 1 },
  { arbitrary: fc.constant({ act: 'look' as const }), weight: 3 },
)
type Act = typeof anAct extends fc.Arbitrary<infer T> ? T : never

const chosen = <T>(all: readonly T[], which: number): T | undefined => all[which % Math.max(1, all.length)]

async function play(pool: PoolModel, act: Act): Promise<void> {
  if (act.act === 'enqueue') pool.enqueue(act.run)
  if (act.act === 'look') await pool.look()
  if (!('which' in act)) return
  const run = chosen(pool.queue, act.which)
  const runner = chosen(pool.runners, act.which)
  if (act.act === 'end') pool.executing = pool.executing.filter((one) => one !== chosen(pool.executing, act.which))
  if (act.act === 'cancel' && run) pool.cancel(run.runId)
  if (act.act === 'grow old' && run) run.isOld = true
  if (act.act === 'close or open' && runner) runner.isOpen = !runner.isOpen
}

/** A pool, and how much of it is looked at and given out in one go. */
const aPool = {
  runners: fc.array(aRunner, { minLength: 1, maxLength: 4 }),
  pieces: fc.record({ mostLines: fc.integer({ min: 1, max: 4 }), most: fc.constantFrom(1, 2, 256) }),
}

const scenario = fc.record({
  ...aPool,
  acts: fc.array(anAct, { maxLength: 60, size: 'max' }),
})

test('a pool in which nothing happens any more has given out all that fits', async (t) => {
  const property = fc.asyncProperty(scenario, async ({ runners, pieces, acts }) => {
    const pool = new PoolModel(runners, pieces)
    for (const act of acts) await play(pool, act)
    // Each of the old ones may have to see that a runner is kept for another.
    for (let looks = pool.queue.filter(({ isOld }) => isOld).length + 2; looks > 0; looks--) await pool.look()
    const { given, reservations } = pool.wanted()
    assert.deepEqual(given, [], 'a runner is idle, and a run waits that fits')
    assert.deepEqual(pool.round.reservations, reservations)
  })
  await fc.assert(property, { numRuns: 300, ...repeatable(t) })
})

const crowd = fc.record({
  ...aPool,
  large: fc.array(fc.record({ slots: fc.integer({ min: 2, max: 6 }), labels }), { minLength: 1, maxLength: 5 }),
  small: fc.array(fc.record({ slots: fc.constantFrom(1, 1, 1, 2), labels }), { minLength: 1, maxLength: 12 }),
})
const AS_USUAL = { priority: 0, isResume: false, isOld: false }

test('large runs begin although small ones come without end', async (t) => {
  const property = fc.asyncProperty(crowd, async ({ runners, pieces, large, small }) => {
    const pool = new PoolModel(runners, pieces)
    for (const one of small) pool.enqueue({ ...AS_USUAL, ...one })
    await pool.look()
    const waiting = new Set<RunId>(large.map((one) => pool.enqueue({ ...AS_USUAL, ...one, isOld: true })))
    for (const { runId, ...head } of pool.queue) if (!pool.mayFit({ runId, ...head })) waiting.delete(runId)
    const slots = runners.reduce((sum, one) => sum + one.slots, 0)
    // Whatever executes when a runner is kept has ended after so many.
    const enough = 4 * (slots + small.length) * (large.length + 1)
    for (let ends = 0; ends < enough && waiting.size > 0; ends++) {
      const [ended] = pool.executing.splice(0, 1)
      assert.ok(ended ?? ends === 0, 'nothing executes')
      pool.enqueue({ ...AS_USUAL, ...small[ends % small.length]! })
      for (const runId of await pool.look()) waiting.delete(runId)
    }
    assert.deepEqual([...waiting], [])
  })
  await fc.assert(property, { numRuns: 200, ...repeatable(t) })
})

test('a look that ends before it comes to a run leaves the runner that is kept for it', async () => {
  const [runner, other] = [newId('rnr'), newId('rnr')]
  const aHead = (needs: string, position: number): QueueHead => {
    return { runId: newId('run'), needs, isResume: false, priority: 0, position, isOld: true }
  }
  const [first, big, last] = [aHead('', 1), aHead('4|', 2), aHead('3|', 3)]
  const candidates = [
    { runnerId: runner, labels: ['gpu'], free: 2 },
    { runnerId: other, labels: [], free: 1 },
  ]
  const workers = candidates.map((one) => ({ ...one, slots: 4 }))
  const reserved = [
    { run: big, runnerId: runner },
    { run: last, runnerId: other },
  ]
  const ask = { heads: [first, big], candidates, each: 9, reserved, workers }
  const both = [
    [big.runId, runner],
    [last.runId, other],
  ]
  assert.deepEqual([...(await match({ ...ask, most: 1 })).reservations], both)
  // What needs as much and goes before it has its runner first, and what it does not need any more ends.
  assert.deepEqual([...(await match({ ...ask, most: 9 })).reservations], both)
  const before = aHead('4|', 0)
  const { reservations } = await match({ ...ask, heads: [before, first, big], most: 9 })
  assert.deepEqual([...reservations], [[before.runId, runner], both[1]])
  assert.deepEqual(
    [...(await match({ ...ask, heads: [first, aHead('4|', 4)], workers: [], most: 9 })).reservations],
    [both[1]],
  )
})
