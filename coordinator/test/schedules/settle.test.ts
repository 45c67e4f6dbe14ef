// What becomes of everything that is due of a schedule, whether it is one tick or a year of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ScheduleRow } from '../../schedules/row.ts'
import { changed, following, rested } from '../../schedules/state.ts'
import { nextOf, settle, type Ticking } from '../../schedules/rules/settle.ts'
import { countTicks, newestTicks, nextTick, ticksBetween, type When } from '../../schedules/rules/ticks.ts'

const of = (when: When, more: Partial<Ticking> = {}): Ticking => ({
  id: 'sch_1',
  when,
  jitterMs: 0,
  catchUp: 'last',
  catchUpWindowMs: 3_600_000,
  overlap: 'allow',
  ...more,
})
const minutes: When = { kind: 'cron', cron: '* * * * *', timezone: 'Europe/Zurich' }
const ROW: Partial<ScheduleRow> = {
  id: 'sch_1' as ScheduleRow['id'],
  timezone: null,
  jitterMs: 0,
  enabled: true,
  restsBecause: null,
  stoppedBecause: null,
  endedAt: null,
  heldSince: null,
  earlier: [],
}
const START = Date.UTC(2027, 2, 1)
const DAY = 86_400_000
const at = { unfinished: [], most: 100 }

test('one tick that is due fires, and the next is found behind it', () => {
  const { fire, missed, upTo, next } = settle({ ...of(minutes), nextAt: START }, { ...at, now: START + 20 })
  assert.deepEqual(
    fire.map((tick) => [tick.at, tick.lateMs]),
    [[START, 20]],
  )
  assert.deepEqual([missed, upTo, next], [null, START, { at: START + 60_000, dueAt: START + 60_000 }])
})

test('two months of minutes are counted to the last, over a change of the clock, and one fires', () => {
  const now = START + 60 * DAY + 200_000
  const { fire, missed, upTo } = settle({ ...of(minutes), nextAt: START }, { ...at, now })
  // 3 min 20 s after a full minute: the last tick is in time.
  assert.equal(upTo, now - 20_000)
  assert.deepEqual(
    fire.map((tick) => [tick.at, tick.isCatchUp]),
    [[upTo, false]],
  )
  assert.deepEqual(missed, { from: START, to: upTo - 60_000, count: (upTo - START) / 60_000, caughtUp: 0 })
})

test('with jitter a tick is due when its jitter is over, and not before', () => {
  const jittered = of(minutes, { jitterMs: 3_600_000, id: 'sch_2' })
  const first = nextOf(jittered, START - 1)!
  assert.ok(first.dueAt > first.at && first.dueAt <= first.at + 30_000)
  const second = nextOf(jittered, first.at)!
  const justBefore = settle({ ...jittered, nextAt: first.at }, { ...at, now: second.dueAt - 1 })
  assert.deepEqual([justBefore.upTo, justBefore.next], [first.at, second])
  assert.equal(settle({ ...jittered, nextAt: first.at }, { ...at, now: second.dueAt }).upTo, second.at)
})

test('counting days and looking from the end find what a walk along all ticks finds', () => {
  const crons = ['*/30 * * * *', '30 2 * * *', '0 0 13 * 5', '15 */5 * * 1-5', '30 23 * * *', '*/30 0,23 * * 6']
  for (const timezone of ['America/Godthab', 'Australia/Lord_Howe', 'America/Santiago', 'UTC'])
    for (const cron of crons) {
      const when: When = { kind: 'cron', cron, timezone }
      const [from, to] = [START + 12_345_678, START + 250 * DAY + 7]
      const all = [...ticksBetween(when, from, to)]
      assert.equal(countTicks(when, from, to), all.length, `${cron} in ${timezone}`)
      assert.deepEqual(newestTicks(when, from, to, 7), all.slice(-7))
    }
  const rate: When = { kind: 'rate', rateMs: 10_000, anchorAt: START }
  assert.equal(countTicks(rate, START, START + 366 * DAY), 366 * 8640)
  assert.deepEqual(newestTicks(rate, START, START + DAY, 2), [START + DAY - 10_000, START + DAY])
  assert.equal(nextTick(rate, START + DAY - 10_000), START + DAY)
})

test('a fixed time that the clock shows again is not counted again behind it', () => {
  const when: When = { kind: 'cron', cron: '30 1,5 * * *', timezone: 'Europe/London' }
  const back = Date.UTC(2027, 9, 31, 1)
  for (const after of [back - DAY, back - 1_800_000, back - 1, back, back + 600_000, back + 1_800_000, back + DAY / 8])
    for (const until of [after, back + 1_900_000, back + DAY / 2, back + 2 * DAY])
      if (until >= after) assert.equal(countTicks(when, after, until), [...ticksBetween(when, after, until)].length)
})

test('what was due at a pause is settled, and nothing of the pause, before or after it went on and was edited', () => {
  const MINUTE = 60_000
  const rate = { kind: 'rate', rateMs: 10 * MINUTE, anchorAt: START } as const
  const first = START + 10 * MINUTE
  const row = { ...ROW, ...rate, settledAt: START, nextAt: first, dueAt: first } as ScheduleRow
  const change = (was: ScheduleRow, now: number, edit: Partial<ScheduleRow>): ScheduleRow => {
    const at = { ...was, now }
    return changed(at, rested(at, { ...at, ...edit }, { now, isWorkflowDeleted: false }).row).row
  }
  const paused = change(row, first + MINUTE, { enabled: false })
  assert.deepEqual([paused.nextAt, paused.earlier.length], [first, 1])
  const resumed = change(paused, first + 45 * MINUTE, { enabled: true })
  assert.equal(following(resumed, [], first + MINUTE).nextAt, first + 50 * MINUTE)
  // Its tick at 50 min is due by the rule that the edit ends.
  const edited = change(resumed, first + 51 * MINUTE, { rateMs: 60 * MINUTE })
  const [, second, ...more] = edited.earlier
  assert.equal(more.length, 0)
  const then = following(edited, [second!], first + MINUTE)
  assert.deepEqual([then.nextAt, then.earlier], [first + 50 * MINUTE, [second]])
  assert.equal(following(edited, [], second!.until).nextAt, START + 120 * MINUTE)
})
