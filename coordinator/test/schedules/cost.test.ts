// What finding ticks costs, however rare they are and however many schedules are shown.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { newestTicks, nextTick, nextTicks, type When } from '../../schedules/rules/ticks.ts'
import { mapInSlices } from '../../slices.ts'
import { turnsBeside } from '../_kit/turns.ts'

const rare = (timezone: string): When => ({ kind: 'cron', cron: '0 0 * 2 2#5', timezone })
const START = Date.UTC(2028, 2, 1)

/** How often `act` asks what the clock of a zone shows. */
function clocksRead(t: TestContext, act: () => void): number {
  let count = 0
  const format = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, 'format')!
  const counted = t.mock.getter(Intl.DateTimeFormat.prototype, 'format', function (this: Intl.DateTimeFormat) {
    count++
    return format.get!.call(this)
  })
  act()
  counted.mock.restore()
  return count
}

test('a fixed time decades away is found with a few looks at the clock of its zone', (t) => {
  const read = clocksRead(t, () => {
    const at = nextTick(rare('Europe/Zurich'), START)
    assert.equal(at, Date.UTC(2056, 1, 28, 23))
  })
  assert.ok(read > 0 && read <= 50, `${read} looks`)
})

test('times that lie in a gap each year are given up after a few looks at the clock', (t) => {
  // Each minute of the hour that the clocks leave out, with two of them in Troll.
  const gaps = [
    ['* 1 * 3 7L', 'Europe/London'],
    ['*/30 2 * 3 7#2', 'America/New_York'],
    ['* 1-2 * 3 7L', 'Antarctica/Troll'],
  ] as const
  for (const [cron, timezone] of gaps) {
    const when: When = { kind: 'cron', cron, timezone }
    const read = clocksRead(t, () => assert.equal(nextTick(when, START), null))
    assert.ok(read > 0 && read <= 300, `${read} looks for ${cron} in ${timezone}`)
    const hours = cron.split(' ')[1]!
    const around: When = { ...when, cron: cron.replace(hours, `${hours},5`) }
    assert.equal(new Date(nextTick(around, START)!).getUTCMinutes(), 0)
  }
})

test('the newest ticks are found with few looks where thousands lie far back, and those before them too', (t) => {
  // Each minute of two months, looked for at the end of another two; and of one minute more.
  const when: When = { kind: 'cron', cron: '* * * 9,10 *', timezone: 'Europe/London' }
  const [from, to] = [Date.UTC(2026, 1, 1), Date.UTC(2027, 11, 30)]
  let ticks: number[] = []
  const read = clocksRead(t, () => (ticks = newestTicks(when, from, to, 3)))
  const end = Date.UTC(2027, 10, 1)
  assert.deepEqual(ticks, [end - 180_000, end - 120_000, end - 60_000])
  assert.ok(read <= 10_000, `${read} looks`)
  const begin = Date.UTC(2027, 7, 31, 23)
  assert.deepEqual(newestTicks(when, from, begin, 3), [
    Date.UTC(2026, 9, 31, 23, 58),
    Date.UTC(2026, 9, 31, 23, 59),
    begin,
  ])
  assert.deepEqual(newestTicks(when, begin - 1, begin, 3), [begin])
})

test('as many as are caught up cost few looks too where they lie apart, and far back', (t) => {
  const when: When = { kind: 'cron', cron: '0 */3 * 1-9 *', timezone: 'Europe/London' }
  const end = Date.UTC(2028, 8, 30, 20)
  let ticks: number[] = []
  const read = clocksRead(t, () => (ticks = newestTicks(when, Date.UTC(2028, 0, 1), Date.UTC(2028, 11, 30), 208)))
  assert.deepEqual([ticks.length, ticks[0], ticks.at(-1)], [208, end - 207 * 3 * 3_600_000, end])
  assert.ok(read <= 12_000, `${read} looks`)
})

test('thousands of patterns do not stay in memory', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 3000; n++) {
    const cron = `${n % 60} ${Math.floor(n / 60) % 24} */2 * ${Math.floor(n / 1440)}`
    nextTick({ kind: 'cron', cron, timezone: 'UTC' }, START)
  }
  collect()
  const grown = (process.memoryUsage().heapUsed - before) / 1024 / 1024
  assert.ok(grown < 100, `${grown} MiB`)
})

test('the next ticks end in front of one that is more than eight years after the one before', () => {
  assert.deepEqual(nextTicks(rare('UTC'), Date.UTC(2027, 0), 5), [Date.UTC(2028, 1, 29)])
  assert.deepEqual(nextTicks(rare('UTC'), START, 5), [])
  const leapDays: When = { kind: 'cron', cron: '0 0 29 2 *', timezone: 'UTC' }
  assert.deepEqual(
    nextTicks(leapDays, Date.UTC(2090, 0), 3),
    [2092, 2096, 2104].map((year) => Date.UTC(year, 1, 29)),
  )
})

test('others have their turn while a list is mapped', async (t) => {
  let mapped: number[] = []
  const turns = await turnsBeside(t, async () => (mapped = await mapInSlices([1, 2, 3, 4], (n) => n * 2)))
  assert.deepEqual(mapped, [2, 4, 6, 8])
  assert.ok(turns >= 3, `${turns} turns`)
})
