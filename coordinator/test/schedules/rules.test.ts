// What becomes of ticks, decided without a database and without a clock.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatchUp } from '@windlass/shared/model/late-rules.ts'
import { heldTimeOf } from '../../schedules/rules/held.ts'
import { jitterOf } from '../../schedules/rules/jitter.ts'
import { decideLate } from '../../schedules/rules/late.ts'
import { decideOverlap } from '../../schedules/rules/overlap.ts'
import { nextTick, nextTicks } from '../../schedules/rules/ticks.ts'

const MINUTE = 60_000
const NOW = 1_000 * MINUTE

/** Ticks of every minute, the last one so long ago. */
const ticks = (count: number, agoMs: number) =>
  Array.from({ length: count }, (_, i) => NOW - agoMs - (count - 1 - i) * MINUTE).map((at) => ({ at, dueAt: at }))

const decide = (catchUp: CatchUp, newest: ReturnType<typeof ticks>, windowMs = 3_600_000, most = 100) =>
  decideLate({ newest, from: newest[0]!.at, count: newest.length }, { now: NOW, catchUp, windowMs, most })

test('a tick in time fires, and nothing was missed', () => {
  const { fire, missed } = decide('skip', ticks(1, 500))
  assert.deepEqual(
    fire.map(({ at, lateMs, isCatchUp }) => [at, lateMs, isCatchUp]),
    [[NOW - 500, 500, false]],
  )
  assert.equal(missed, null)
})

test('skip fires no missed tick, last the newest, all of them one per second', () => {
  const due = ticks(5, 2 * MINUTE)
  const missed = { from: NOW - 6 * MINUTE, to: NOW - 2 * MINUTE, count: 5 }
  assert.deepEqual(decide('skip', due), { fire: [], missed: { ...missed, caughtUp: 0 } })
  const last = decide('last', due)
  assert.deepEqual(last.fire, [{ at: missed.to, dueAt: missed.to, lateMs: 2 * MINUTE, isCatchUp: true, delayMs: 0 }])
  assert.deepEqual(last.missed, { ...missed, caughtUp: 1 })
  const all = decide('all', due)
  assert.deepEqual(
    all.fire.map(({ at, delayMs }) => [at, delayMs]),
    due.map(({ at }, i) => [at, i * 1000]),
  )
  assert.deepEqual(all.missed, { ...missed, caughtUp: 5 })
})

test('last leaves it at the tick that is in time', () => {
  const { fire, missed } = decide('last', ticks(3, 10_000))
  assert.deepEqual(
    fire.map(({ at, isCatchUp }) => [at, isCatchUp]),
    [[NOW - 10_000, false]],
  )
  assert.deepEqual(missed, { from: NOW - 10_000 - 2 * MINUTE, to: NOW - 10_000 - MINUTE, count: 2, caughtUp: 0 })
})

test('what is older than the window never fires, and all fires the newest hundred at most', () => {
  assert.deepEqual(decide('last', ticks(3, 90 * MINUTE)).fire, [])
  const { fire, missed } = decide('all', ticks(300, 2 * MINUTE), 604_800_000)
  assert.equal(fire.length, 100)
  assert.equal(fire[0]!.at, NOW - 101 * MINUTE)
  assert.deepEqual([missed?.count, missed?.caughtUp], [300, 100])
  assert.equal(decide('all', ticks(300, 2 * MINUTE), 604_800_000, 7).fire.length, 7)
})

test('overlap: allow fires all, skip meets the unfinished run, cancel ends it for the last tick', () => {
  assert.deepEqual(decideOverlap('allow', [1, 2], ['run']), { fire: [1, 2], skip: [], cancel: [] })
  assert.deepEqual(decideOverlap('skip', [1, 2], ['run']), { fire: [], skip: [1, 2], cancel: [] })
  assert.deepEqual(decideOverlap('skip', [1, 2], []), { fire: [1], skip: [2], cancel: [] })
  assert.deepEqual(decideOverlap('cancel', [1, 2], ['run']), { fire: [2], skip: [1], cancel: ['run'] })
  assert.deepEqual(decideOverlap('cancel', [], ['run']), { fire: [], skip: [], cancel: [] })
})

test('a rate ticks in steps from its anchor, the first one step behind it', () => {
  const when = { kind: 'rate', rateMs: 6 * 60 * MINUTE, anchorAt: NOW } as const
  assert.equal(nextTick(when, NOW - 5 * MINUTE), NOW + when.rateMs)
  assert.equal(nextTick(when, NOW), NOW + when.rateMs)
  assert.equal(nextTick(when, NOW + when.rateMs), NOW + 2 * when.rateMs)
  assert.deepEqual(
    nextTicks(when, NOW + 1, 3),
    [1, 2, 3].map((n) => NOW + n * when.rateMs),
  )
  assert.deepEqual(nextTicks({ kind: 'at', at: NOW }, NOW - 1, 5), [NOW])
  assert.equal(nextTick({ kind: 'at', at: NOW }, NOW), null)
})

test('jitter is the same on any coordinator, spreads, and never reaches beyond half the gap', () => {
  const jitter = (schedule: string, at: number, nextAt: number | null = at + MINUTE) =>
    jitterOf({ schedule, jitterMs: 3_600_000, at, nextAt })
  assert.equal(jitter('sch_a', NOW), jitter('sch_a', NOW))
  const spread = Array.from({ length: 1000 }, (_, i) => jitter(`sch_${i}`, NOW))
  assert.ok(spread.every((ms) => ms >= 0 && ms <= MINUTE / 2))
  assert.ok(new Set(spread).size > 900)
  assert.ok(spread.some((ms) => ms < 3000) && spread.some((ms) => ms > 27_000))
  assert.equal(jitterOf({ schedule: 'sch_a', jitterMs: 0, at: NOW, nextAt: null }), 0)
})

test('time for which ticks waited for an agent is none by which they are late', () => {
  const held = { from: NOW - 100_000, to: NOW - 1000 }
  const due = ticks(4, 20_000)
  const ask = { now: NOW, catchUp: 'skip', windowMs: 3_600_000, most: 100, held } as const
  const { fire, missed } = decideLate({ newest: due, from: due[0]!.at, count: 4 }, ask)
  assert.deepEqual(
    fire.map(({ at, lateMs }) => [NOW - at, lateMs]),
    [140_000, 80_000, 20_000].map((ms) => [ms, ms]),
  )
  assert.deepEqual([missed?.count, missed?.to], [1, due[0]!.at])
})

test('ticks wait for three minutes at most, whoever puts them off', () => {
  const row = { heldSince: NOW - 10 * MINUTE, dueAt: NOW, now: NOW }
  assert.deepEqual(heldTimeOf(row), { from: NOW - 10 * MINUTE, to: NOW - 7 * MINUTE })
  assert.deepEqual(heldTimeOf({ ...row, dueAt: NOW - 9 * MINUTE })!.to, NOW - 9 * MINUTE)
  assert.equal(heldTimeOf({ ...row, heldSince: null }), null)
})
