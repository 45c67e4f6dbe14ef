// Coordinators tell each other of what they have yet to write of an outage.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createBacklog } from '../../engine/commit/backlog.ts'
import { createPulse } from '../../engine/commit/pulse.ts'
import { sweepPlacements } from '../../engine/sweep/overdue.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'

let c: TestCoordinator

before(async () => {
  // It has no pulses of its own.
  c = await aCoordinator()
})
after(() => c.stop())

/** A coordinator that does nothing but pulses. For its own clock no time passes. */
function aCoordinatorAmong() {
  const backlog = createBacklog(() => 10_000)
  return { backlog, pulse: createPulse({ ...c.deps, backlog }, () => 10_000) }
}

/** As if a moment had passed since a coordinator said so. */
const passed = () => c.db`update pulse set late_at = late_at - interval '2 seconds'`

test('a coordinator that has yet to write is known to the others with their next pulse', async () => {
  const [late, other] = [aCoordinatorAmong(), aCoordinatorAmong()]
  const ends = Promise.withResolvers<void>()
  void late.backlog.track(ends.promise)
  await other.pulse()
  assert.equal(other.backlog.isThere(), false)
  late.backlog.lost()
  await late.pulse()
  await other.pulse()
  assert.deepEqual([other.backlog.isThere(), other.backlog.isOwn()], [true, false])
  // It does not say it on.
  const third = aCoordinatorAmong()
  await passed()
  await other.pulse()
  await third.pulse()
  assert.equal(third.backlog.isThere(), false)
})

test('what a coordinator has said itself is not news to it', async () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  const pulse = createPulse({ ...c.deps, backlog })
  backlog.lost()
  await pulse()
  now += 2000
  await pulse()
  assert.equal(backlog.isThere(), false)
})

test('the database works again with the next pulse, though nothing else is written', async () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  void backlog.track(new Promise(() => {}))
  backlog.lost()
  await createPulse({ ...c.deps, backlog })()
  now += 10_000
  assert.equal(backlog.isThere(), false)
})

test('what was said by a clock of the database that was ahead holds nobody up', async () => {
  const { backlog, pulse } = aCoordinatorAmong()
  await c.db`update pulse set late_at = clock_timestamp() + interval '1 day'`
  await pulse()
  assert.equal(backlog.isThere(), false)
})

test('a backlog is told at once, however rare pulses are', async () => {
  const stop = new AbortController()
  const backlog = createBacklog()
  const first = moment('pulse.done')
  const sweeping = sweepPlacements({ ...c.deps, backlog }, stop.signal)
  await first
  const second = moment('pulse.done')
  void backlog.track(new Promise(() => {}))
  backlog.lost()
  await second
  const [{ isTold }] = await c.db<[{ isTold: boolean }]>`select late_at = at as is_told from pulse`
  assert.equal(isTold, true)
  stop.abort()
  await sweeping
})
