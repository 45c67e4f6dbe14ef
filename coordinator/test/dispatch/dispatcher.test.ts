import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { ClaimAnswer } from '../../engine/commit/claims.ts'
import { createDispatchers } from '../../dispatch/dispatcher.ts'
import type { Claimed, ClaimCandidate } from '../../engine/store/claim.ts'

const log = createLog({ part: 'test' }, 'error')
const NOTHING: ClaimAnswer = { claimed: [], isMore: false }

/** A dispatcher whose claims are answered by the test. */
function byHand() {
  const claims: { candidates: ClaimCandidate[]; answer(given: ClaimAnswer): void; fail(error: Error): void }[] = []
  const claim = (_: unknown, candidates: ClaimCandidate[]) =>
    new Promise<ClaimAnswer>((answer, fail) => void claims.push({ candidates, answer, fail }))
  const back: Claimed[] = []
  const giveBack = (claimed: Claimed[]) => void back.push(...claimed)
  const dispatchers = createDispatchers({ log, claim, lookAgainMs: 60_000, max: 256 })
  dispatchers.onUnclaimed(giveBack)
  return { claims, back, dispatchers }
}

const aRunner = (id = newId('rnr'), poolId = newId('pool')) => ({ id, poolId, orgId: newId('org') })
const aRunFor = ({ runnerId }: ClaimCandidate): Claimed => ({ runId: newId('run'), runnerId }) as Claimed

test('a poll whose time is over while it is being claimed for gets what that brings', async () => {
  const { claims, dispatchers } = byHand()
  const over = new AbortController()
  const poll = dispatchers.poll(aRunner(), 1, over.signal)
  over.abort()
  const run = aRunFor(claims[0]!.candidates[0]!)
  claims[0]!.answer({ claimed: [run], isMore: false })
  assert.deepEqual(await poll, [run])
  assert.equal(dispatchers.waiting(), 0)
})

test('a poll whose time is over is answered after the claim that brings it nothing, or fails', async () => {
  for (const how of ['empty', 'failed']) {
    const { claims, dispatchers } = byHand()
    const over = new AbortController()
    const poll = dispatchers.poll(aRunner(), 1, over.signal)
    over.abort()
    if (how === 'empty') claims[0]!.answer(NOTHING)
    else claims[0]!.fail(new Error('the database is away'))
    assert.deepEqual(await poll, [])
    assert.equal(dispatchers.waiting(), 0)
  }
})

test('what a claim brings to a poll that did not wait for it any more goes back', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { claims, back, dispatchers } = byHand()
  const over = new AbortController()
  const poll = dispatchers.poll(aRunner(), 1, over.signal)
  over.abort()
  t.mock.timers.tick(60_000)
  assert.deepEqual(await poll, [])
  const run = aRunFor(claims[0]!.candidates[0]!)
  claims[0]!.answer({ claimed: [run], isMore: false })
  await setImmediate()
  assert.deepEqual(back, [run])
})

test('a poll that is withdrawn gets what a claim under way brings, and else nothing at once', async () => {
  const { claims, dispatchers } = byHand()
  const [pool, runner, other] = [newId('pool'), newId('rnr'), newId('rnr')]
  const { signal } = new AbortController()
  const [poll, others] = [runner, other].map((id) => dispatchers.poll(aRunner(id, pool), 1, signal))
  dispatchers.withdraw(pool, runner)
  const run = aRunFor(claims[0]!.candidates[0]!)
  claims[0]!.answer({ claimed: [run], isMore: false })
  assert.deepEqual(await poll, [run])
  await setImmediate()
  claims[1]!.answer(NOTHING)
  await setImmediate()
  assert.equal(dispatchers.waiting(), 1)
  dispatchers.withdraw(pool, other)
  assert.deepEqual(await others, [])
})

test('of more polls than are served at once all may be chosen, and each has a share', () => {
  const { claims, dispatchers } = byHand()
  const pool = newId('pool')
  const over = new AbortController()
  for (let i = 0; i < 300; i++) void dispatchers.poll(aRunner(newId('rnr'), pool), 4, over.signal)
  claims[0]!.answer(NOTHING)
  return new Promise<void>((resolve) =>
    globalThis.setImmediate(() => {
      assert.equal(claims[1]!.candidates.length, 300)
      assert.ok(claims[1]!.candidates.every(({ slots, share }) => slots === 4 && share === 1))
      claims[1]!.answer(NOTHING)
      over.abort()
      resolve()
    }),
  )
})

test('a runner has a handful of polls open: the newest ends the oldest, and none of another', async () => {
  const { claims, dispatchers } = byHand()
  const [pool, runner, other] = [newId('pool'), newId('rnr'), newId('rnr')]
  const { signal } = new AbortController()
  const ended: string[] = []
  const open = (name: string, of: typeof runner) =>
    void dispatchers.poll(aRunner(of, pool), 1, signal).then(() => ended.push(name))
  open('other', other)
  for (let n = 0; n < 100; n++) open(`${n}`, runner)
  claims[0]!.answer(NOTHING)
  await setImmediate()
  assert.equal(dispatchers.waiting(), 5)
  assert.deepEqual(
    ended,
    Array.from({ length: 96 }, (_, n) => `${n}`),
  )
  dispatchers.withdraw(pool, runner)
  claims[1]!.answer(NOTHING)
  await setImmediate()
  assert.equal(dispatchers.waiting(), 1)
  assert.equal(ended.includes('other'), false)
})

test('a pool of which matching took long is looked at again after as long a rest', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { claims, dispatchers } = byHand()
  const runner = aRunner()
  void dispatchers.poll(runner, 1, new AbortController().signal)
  claims[0]!.answer({ claimed: [], isMore: true, restMs: 300 })
  await setImmediate()
  dispatchers.poke(runner.poolId)
  t.mock.timers.tick(299)
  await setImmediate()
  assert.equal(claims.length, 1)
  t.mock.timers.tick(1)
  await setImmediate()
  assert.equal(claims.length, 2)
})
