import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertMove, isFinal, mayMove, RUN_STATUSES, type RunStatus } from '@windlass/shared/model/run.ts'

// Written down once more from the contract, so that a slip in the table is seen.
const SUSPENDED: RunStatus[] = ['sleeping', 'awaiting_input', 'waiting_for_child']
const ALLOWED: [RunStatus, RunStatus][] = [
  ['queued', 'pending'],
  ['pending', 'running'],
  ['running', 'completed'],
  ['running', 'failed'],
  ...SUSPENDED.map((status): [RunStatus, RunStatus] => ['running', status]),
  ...SUSPENDED.map((status): [RunStatus, RunStatus] => [status, 'running']),
  // A lost runner or a crash: from the top, or failed when it was the last attempt.
  ['pending', 'queued'],
  ['running', 'queued'],
  ['pending', 'failed'],
  // Its time is over, or it is lost too often, while it waits; a blocked run starts again from the top.
  ['queued', 'failed'],
  ...SUSPENDED.flatMap((status): [RunStatus, RunStatus][] => [
    [status, 'failed'],
    [status, 'queued'],
  ]),
  // A cancel takes every run that has not finished.
  ...(['queued', 'pending', 'running', ...SUSPENDED] as const).map((status): [RunStatus, RunStatus] => [
    status,
    'cancelling',
  ]),
  ['cancelling', 'cancelled'],
]

test('of the hundred pairs of statuses, runs move along those of the contract and no others', () => {
  const allowed = new Set(ALLOWED.map((pair) => pair.join(' → ')))
  assert.equal(RUN_STATUSES.length, 10)
  for (const from of RUN_STATUSES) {
    for (const to of RUN_STATUSES) {
      const isAllowed = allowed.has(`${from} → ${to}`)
      assert.equal(mayMove(from, to), isAllowed, `${from} → ${to}`)
      if (isAllowed) assert.doesNotThrow(() => assertMove(from, to))
      else assert.throws(() => assertMove(from, to), new RegExp(`never moves from ${from} to ${to}`))
    }
  }
})

test('the three final statuses are those that lead nowhere', () => {
  assert.deepEqual(RUN_STATUSES.filter(isFinal), ['completed', 'failed', 'cancelled'])
  for (const status of RUN_STATUSES)
    assert.equal(
      isFinal(status),
      RUN_STATUSES.every((to) => !mayMove(status, to)),
    )
})
