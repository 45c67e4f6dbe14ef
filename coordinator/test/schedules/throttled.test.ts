import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { aMovableCoordinator, aSchedule, firedBy, passTo } from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const HOUR = 3_600_000
let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

test('ticks that fire together take a turn of the throttle each', async () => {
  await aWorkflow(c, { slug: 'hourly', descriptor: { throttle: { limit: 1, per: '1h' } } })
  const schedule = await aSchedule(c, { workflow: 'hourly', rate: '10s' })
  await passTo(c, schedule.nextAt! + 35_000)
  const runs = await firedBy(c, schedule)
  const waits = runs
    .map(({ queuedAt, createdAt }) => Math.round((queuedAt - createdAt) / HOUR))
    .toSorted((a, b) => a - b)
  assert.ok(waits.length >= 4)
  assert.deepEqual(waits, [...waits.keys()])
})
