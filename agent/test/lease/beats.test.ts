import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBell } from '../../bell.ts'
import { createBeats } from '../../lease/beats.ts'
import { heldForMs, leaseOf } from '../../lease/fence.ts'
import type { Sleeps } from '../../link/sleeps.ts'
import { sinceBootMs } from '../../os/process-id.ts'

const HOUR_MS = 3_600_000

/** Of an agent that has been told so many hours for a lease. */
function needs(beats: ReturnType<typeof createBeats>, fenceHours: number) {
  const sleeps = { look: () => undefined, since: () => 0 } as unknown as Sleeps
  const current = { heartbeatMs: 50, fenceMs: fenceHours * HOUR_MS, cancelGraceMs: 0, pollMs: 0 }
  return { settings: { current }, beats, sleeps }
}

/** How many hours its leases hold yet. */
function hoursOf(beats: ReturnType<typeof createBeats>, fenceHours: number): number {
  return Math.round(heldForMs(needs(beats, fenceHours)) / HOUR_MS)
}

const beganHoursAgo = (hours: number, ofHours: number) => ({
  fromMs: sinceBootMs() - hours * HOUR_MS,
  fenceMs: ofHours * HOUR_MS,
})

test('what the agent before this one was promised holds until a heartbeat of this one is answered', () => {
  const beats = createBeats(createBell(), beganHoursAgo(3, 10))
  assert.equal(hoursOf(beats, 10), 7)
  assert.equal(hoursOf(beats, 5), 2, 'a shorter time counts at once')
  assert.equal(hoursOf(beats, 24), 7, 'a longer one does not')
  beats.answered(beats.next(24 * HOUR_MS))
  assert.equal(hoursOf(beats, 24), 24)
})

test('one that has heard nothing and follows nobody has no lease', () => {
  const beats = createBeats(createBell())
  assert.equal(hoursOf(beats, 10), -Infinity)
  assert.equal(beats.heldMs(), undefined)
})

test('the next agent is told what the heartbeat that was answered had promised, and no longer time', () => {
  const beats = createBeats(createBell())
  beats.answered(beats.next(10 * HOUR_MS))
  // It is 24 hours since the answer to the one before it.
  assert.equal(leaseOf(needs(beats, 24)).fenceMs, 10 * HOUR_MS)
  assert.equal(leaseOf(needs(beats, 5)).fenceMs, 5 * HOUR_MS)
})
