// A year of ticks, in every zone whose clocks are changed in it, is what a walk minute by minute finds. Each zone is a
// round, in an order that WINDLASS_TEST_SEED repeats; WINDLASS_TEST_ROUNDS=128 plays all of them in nine minutes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { chosenSeed, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { PATTERNS, walk, zonesWithChanges } from '../../../coordinator/test/_kit/walk.ts'
import { ticksBetween } from '../../../coordinator/schedules/rules/ticks.ts'

const YEAR = 2027

test('a year of ticks is that of a walk in every zone with changes', (t) => {
  const seed = chosenSeed()
  const random = randomOf(seed)
  const zones = zonesWithChanges(YEAR)
    .map((zone) => ({ zone, order: random.next() }))
    .sort((a, b) => a.order - b.order)
  let ticks = 0
  let played = 0
  for (const round of rounds({ test: 2, storm: zones.length })) {
    const zone = zones[round]?.zone
    if (zone === undefined) break
    ticks += compare(zone)
    played++
  }
  t.diagnostic(`${played} of ${zones.length} zones, ${ticks} ticks of ${PATTERNS.length} patterns, seed ${seed}`)
})

/** Returns the number of ticks. */
function compare(zone: string): number {
  const walked = walk(zone, YEAR, PATTERNS)
  PATTERNS.forEach((cron, i) => {
    const when = { kind: 'cron', cron, timezone: zone } as const
    const found = [...ticksBetween(when, Date.UTC(YEAR, 0, 1) - 1, Date.UTC(YEAR + 1, 0, 1) - 1)]
    assert.deepEqual(found, walked[i], `${cron} in ${zone}`)
  })
  return walked.reduce((sum, each) => sum + each.length, 0)
}
