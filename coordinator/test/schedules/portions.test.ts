// What a pass writes of that which it has decided, and in which transactions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NewRun } from '../../engine/store/new-runs.ts'
import { fitting, pieces, weightOf } from '../../schedules/portions.ts'

const aPlan = (name: string, runs: number, inputChars = 0) => ({
  name,
  runs: Array.from({ length: runs }, () => ({ input: 'x'.repeat(inputChars) }) as NewRun),
})
type Named = ReturnType<typeof aPlan>
const namesOf = (plans: readonly Named[]) => plans.map(({ name }) => name)

test('an input counts by its size', () => {
  assert.equal(weightOf(aPlan('a', 3)), 3)
  assert.equal(weightOf(aPlan('a', 2, 64 * 1024)), 6)
})

test('a transaction has some hundred runs, and a plan that is larger is alone', () => {
  const plans = [aPlan('a', 200), aPlan('b', 56), aPlan('c', 1), aPlan('d', 300), aPlan('e', 1)]
  assert.deepEqual(pieces(plans).map(namesOf), [['a', 'b'], ['c'], ['d'], ['e']])
})

test('orgs with little are in each pass, in front of those that catch up', () => {
  const busy = Array.from({ length: 30 }, (_, i) => [aPlan(`busy${i}`, 100), aPlan(`busy${i}`, 100)])
  const quiet = Array.from({ length: 70 }, (_, i) => [aPlan(`quiet${i}`, 1)])
  const names = namesOf(fitting([...busy, ...quiet]))
  assert.deepEqual(names.slice(0, 70), namesOf(quiet.flat()))
  assert.equal(names.length, 70 + 20)
})

// The lightest came first, so that five orgs that caught up with less each kept one out of every pass.
test('no org is kept out by others that always have less', () => {
  const others = Array.from({ length: 6 }, (_, i) => Array.from({ length: 20 }, () => aPlan(`other${i}`, 25)))
  const orgs = [...others, [aPlan('heavy', 700)]]
  let lots = 0
  // Each org draws its lot in turn.
  const names = (of: number[]) => namesOf(fitting(orgs, () => of[lots++ % of.length]!))
  assert.ok(names([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1]).includes('heavy'))
  assert.ok(!names([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9]).includes('heavy'))
})
