import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { createDatabaseClock, createSteady, openDatabaseClock } from '../../db/database-clock.ts'
import { testDatabase } from '../_kit/database.ts'

const database = await testDatabase()
after(() => database.close())

const MINUTE_MS = 60_000

interface Line {
  name: string
  aheadMs: number
  advice?: string
}

function logged() {
  const lines: Line[] = []
  return { lines, log: createLog({}, 'debug', { write: (line) => void lines.push(JSON.parse(line) as Line) }) }
}

/** One that knows nothing yet. Its looks take as long as a test says. */
function aClock() {
  const { lines, log } = logged()
  let ticks = 0
  const clock = createDatabaseClock(log, () => ticks)
  return {
    clock,
    lines,
    pass: (ms: number) => void (ticks += ms),
    /** The database says its time so long after it was asked, and the answer takes as long again. */
    look: (time: number, waysMs: readonly [number, number] = [0, 0]) => {
      const learn = clock.look()
      ticks += waysMs[0]
      ticks += waysMs[1]
      learn(time)
    },
  }
}

test('a clock that is off is told by how much with its consequence, and one that is right is not', async (t) => {
  const { lines, log } = logged()
  await openDatabaseClock({ db: database.db, log })
  assert.deepEqual(lines, [])
  const now = Date.now
  for (const minutes of [2, -2]) {
    const wrong = t.mock.method(Date, 'now', () => now() + minutes * MINUTE_MS)
    const clock = await openDatabaseClock({ db: database.db, log })
    const [aheadMs, time] = [clock.aheadMs(), clock.now()]
    wrong.mock.restore()
    assert.ok(Math.abs(aheadMs - minutes * MINUTE_MS) < MINUTE_MS / 2, String(aheadMs))
    assert.ok(Math.abs(time - now()) < MINUTE_MS / 2, String(time))
  }
  assert.deepEqual(
    lines.map(({ name, advice }) => [name, /ids of runs/.test(advice ?? '')]),
    [
      ['clock.differs', true],
      ['clock.differs', true],
    ],
  )
})

test('a clock that is set while the coordinator serves is said with the next look, and so is its end', (t) => {
  const real = Date.now()
  const { look, lines } = aClock()
  const wall = t.mock.method(Date, 'now', () => real)
  const show = (aheadMs: number) => {
    wall.mock.mockImplementation(() => real + aheadMs)
    look(real)
    return lines.splice(0).map(({ name, aheadMs }) => [name, aheadMs])
  }
  assert.deepEqual(show(0), [])
  assert.deepEqual(show(4000), [])
  assert.deepEqual(show(6000), [['clock.differs', 6000]])
  assert.deepEqual(show(7000), [], 'it is said already')
  assert.deepEqual(show(7_200_000), [['clock.differs', 7_200_000]])
  assert.deepEqual(show(4000), [], 'neither far apart nor together')
  assert.deepEqual(show(-50), [['clock.agrees', -50]])
  assert.deepEqual(show(0), [])
})

test('between two looks its time goes on by what passes, whatever this clock is set to', (t) => {
  const { clock, look, pass } = aClock()
  look(1_000_000)
  pass(5000)
  t.mock.method(Date, 'now', () => 77)
  assert.equal(clock.now(), 1_005_000)
})

test('a look that took long does not make worse what is known, and one that contradicts it counts', () => {
  const { clock, look } = aClock()
  look(1_000_000, [1, 1])
  assert.ok(Math.abs(clock.now() - 1_000_001) <= 1)
  // The database said its time at once, and the answer was long on its way.
  look(1_000_001, [0, 9000])
  assert.ok(Math.abs(clock.now() - 1_009_001) <= 1, String(clock.now()))
  // It was set ahead by an hour.
  look(1_009_001 + 60 * MINUTE_MS, [1, 1])
  assert.ok(Math.abs(clock.now() - (1_009_002 + 60 * MINUTE_MS)) <= 2, String(clock.now()))
})

test('what the machine has slept has passed, and what its clock was set by has not', (t) => {
  let [wall, ticks, boot] = [5_000_000, 1000, 9000]
  t.mock.method(Date, 'now', () => wall)
  t.mock.method(performance, 'now', () => ticks)
  const steady = createSteady(() => boot)
  const start = steady()
  const pass = (ms: number) => ([wall, ticks, boot] = [wall + ms, ticks + ms, boot + ms])
  pass(3000)
  assert.equal(steady() - start, 3000)
  wall += 60 * MINUTE_MS
  assert.equal(steady() - start, 3000)
  ;[wall, boot] = [wall + MINUTE_MS, boot + MINUTE_MS]
  pass(10)
  assert.equal(steady() - start, MINUTE_MS + 3010)
  wall -= 120 * MINUTE_MS
  pass(10)
  assert.equal(steady() - start, MINUTE_MS + 3020)
})
