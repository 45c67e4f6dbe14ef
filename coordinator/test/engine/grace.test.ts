import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGrace } from '../../engine/commit/grace.ts'

test('grace is from the start on, after a gap for as long as leases have, and again without pulses', () => {
  let now = 1000
  const grace = createGrace({ sweepMs: 5000 }, () => now)
  const notBegun = { gapAtMs: Infinity, sinceMs: 0, leftMs: 1000 }
  assert.deepEqual(grace.now(), notBegun)
  grace.note({ atMs: 500_000, gapAtMs: 499_000, graceUntilMs: 510_000 })
  now += 4000
  assert.deepEqual(grace.now(), { gapAtMs: 499_000, sinceMs: 5000, leftMs: 6000 })
  now += 6000
  assert.equal(grace.now(), undefined)
  // Three sweeps without a pulse of our own: nobody may be there.
  now += 5001
  assert.deepEqual(grace.now(), notBegun)
  now += 300_001
  assert.equal(grace.now(), undefined)
  grace.note({ atMs: 600_000, gapAtMs: 600_000, graceUntilMs: null })
  assert.equal(grace.now(), undefined)
})
