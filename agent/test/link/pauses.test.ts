import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longestPauseMs } from '../../link/pauses.ts'

const pauseOf = (programs: number, held: number, fenceMs = 50_000) =>
  longestPauseMs({
    agentRuns: { size: programs },
    spool: { held: () => Array.from({ length: held }) },
    settings: { current: { fenceMs } },
  })

test('an agent that executes, or that has the end of a run to tell, connects again within a tenth of its fence', () => {
  assert.equal(pauseOf(0, 0), 30_000)
  assert.equal(pauseOf(1, 1), 5000)
  assert.equal(pauseOf(0, 1), 5000)
  assert.equal(pauseOf(1, 0), 5000)
  assert.equal(pauseOf(0, 1, 86_000_000), 30_000)
})
