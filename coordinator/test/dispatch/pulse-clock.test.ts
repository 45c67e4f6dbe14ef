import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { moveClock } from '../_kit/database-clock.ts'
import * as kit from '../_kit/pulses.ts'

const { about, MINUTE, SLACK_MS } = kit

let pulses: kit.Pulses

before(async () => {
  pulses = await kit.createPulses()
})
after(() => pulses?.c.stop())

test('with each pulse a coordinator learns what the clock of the database shows', async () => {
  const { c, aCoordinatorAmong } = pulses
  const pulse = await aCoordinatorAmong()
  about(c.deps.databaseClock.now() - Date.now(), 0, SLACK_MS)
  for (const byMs of [60 * MINUTE, -90 * MINUTE]) {
    const before = c.deps.databaseClock.now()
    await moveClock(c.db, byMs)
    about(c.deps.databaseClock.now() - before, 0)
    await pulse()
    about(c.deps.databaseClock.now() - before, byMs)
  }
  assert.ok(c.deps.databaseClock.aheadMs() > 20 * MINUTE)
})
