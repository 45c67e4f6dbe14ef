import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { warnOfClock } from '../../db/clock-difference.ts'
import { testDatabase } from '../_kit/database.ts'

const database = await testDatabase()
after(() => database.close())
const log = createLog({ part: 'test' }, 'error')

test('a clock that is off is told by how much, and one that is right is not', async (t) => {
  const said = t.mock.method(log, 'warn', () => {})
  assert.equal(await warnOfClock(database.db, log), 0)
  assert.equal(said.mock.callCount(), 0)
  const now = Date.now
  for (const minutes of [2, -2]) {
    const clock = t.mock.method(Date, 'now', () => now() + minutes * 60_000)
    const aheadMs = await warnOfClock(database.db, log)
    clock.mock.restore()
    // Less by what the question took.
    assert.ok(Math.sign(aheadMs) === Math.sign(minutes) && Math.abs(aheadMs) <= 120_000, String(aheadMs))
  }
  assert.equal(said.mock.callCount(), 2)
})
