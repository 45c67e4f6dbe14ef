// Ticks of a year are those that a walk minute by minute finds. All zones: deploy/e2e/storm/schedule-ticks.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATTERNS, walk } from '../_kit/walk.ts'
import { ticksBetween } from '../../schedules/rules/ticks.ts'

const YEAR = 2027

// A gap that ends the day, half an hour, and four changes in a year.
for (const zone of ['America/Godthab', 'Australia/Lord_Howe', 'Africa/Casablanca']) {
  test(`a year of ticks in ${zone} is that of a walk`, () => {
    const walked = walk(zone, YEAR, PATTERNS)
    PATTERNS.forEach((cron, i) => {
      const when = { kind: 'cron', cron, timezone: zone } as const
      const end = Date.UTC(YEAR + 1, 0, 1) - 1
      assert.deepEqual([...ticksBetween(when, Date.UTC(YEAR, 0, 1) - 1, end)].map(iso), walked[i]!.map(iso), cron)
    })
  })
}

const iso = (at: number) => new Date(at).toISOString()
