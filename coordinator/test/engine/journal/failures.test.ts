// What the next attempt is handed of the failures of those before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { recordsAfter } from '../../../engine/store/journal.ts'
import { end, returned, start, takeNext } from '../../_kit/agent.ts'
import {
  calls,
  delivered,
  evicted,
  failuresOf,
  goesOn,
  identity,
  journalOf,
  parked,
  said,
  sleeps,
  stepped,
} from '../../_kit/journal.ts'
import { journalStage } from '../../_kit/journal-crew.ts'

const retries = { crash: 10, error: { max: 10, delay: '1h' } }
const { current, begun, next, hurry } = journalStage([{ slug: 'any', descriptor: { retries } }, { slug: 'child' }])

const killed = () => end({ how: 'killed', signal: 'SIGKILL' }, 1)
const threw = () => end({ how: 'threw', error: { name: 'Error', message: 'no' } }, 1)

const FAILED = { state: 'failed', result: '{"name":"Error","message":"no"}' } as const
const DONE = { state: 'done', result: '"yes"' } as const

/** The `n`th call of a step that is called time and again. */
const paid = (n: number, outcome: Pick<Extract<JournalOp, { op: 'close' }>, 'state' | 'result'>, occurrence = n) =>
  said({ op: 'close', entry: identity(n, 'step', { name: 'pay', hash: '', occurrence }), ...outcome })

const adopted = (n: number) => said({ op: 'adopt', n, position: n })

test('a failure is handed to the next attempt, which takes it over, and is its own in a replay', async () => {
  const { c, link } = current()
  const first = await begun()
  await link.report(first, 2, paid(1, FAILED), delivered([1, 1]), paid(2, DONE), killed())
  const second = await next(first.run)
  assert.deepEqual(failuresOf(second), [
    [1, 1, 'failed', 1, 1, null],
    [2, 1, 'done', null, 0, null],
  ])
  assert.deepEqual([...(await recordsAfter(c.db, first.run, { n: 0, last: 0 }))], journalOf(second))
  await link.report(second, 1, start(), adopted(1), delivered([1, 1]), adopted(2), delivered([2, 2]))
  await link.report(second, 6, sleeps(3, 0), parked('sleep'), evicted())
  await hurry(first.run)
  const again = await next(first.run)
  assert.deepEqual([again.attempt, again.replay], [2, true])
  assert.deepEqual(failuresOf(again).slice(0, 2), [
    [1, 2, 'failed', 1, 1, [1, 1, 1]],
    [2, 2, 'done', 2, 2, null],
  ])
  await link.report(again, 1, start(), end(returned(null), 1))
})

test('a child that fails after its attempt was lost is handed over as one that nobody was given', async () => {
  const { link } = current()
  const first = await begun()
  await link.report(first, 2, calls(1, 'child'))
  const { agent } = current()
  const child = await takeNext(agent, link)
  await link.report(first, 3, killed())
  await link.report(child, 2, end({ how: 'exited', exitCode: 3 }, 1))
  const second = await next(first.run)
  assert.deepEqual(failuresOf(second), [[1, 1, 'failed', null, 0, null]])
  await link.report(second, 1, start(), end(returned(null), 1))
})

test('the failure that an attempt was given last is taken back when it throws, and no other', async () => {
  const { link } = current()
  const first = await begun()
  await link.report(first, 2, paid(1, FAILED), delivered([1, 1]), paid(2, FAILED), paid(3, DONE))
  // Told in one go with the end.
  await link.report(first, 6, delivered([2, 2, 2]), threw())
  await hurry(first.run)
  const second = await next(first.run)
  assert.deepEqual(failuresOf(second), [
    [1, 1, 'failed', 1, 1, null],
    [2, 1, 'failed', null, 2, null],
    [3, 1, 'done', null, 0, null],
  ])
  // It is tried again and is given before the throw; now the last is a result.
  await link.report(second, 1, start(), adopted(1), delivered([1, 1]), paid(4, DONE, 2), delivered([2, 4]), threw())
  await hurry(first.run)
  const third = await next(first.run)
  assert.deepEqual(failuresOf(third).slice(0, 2), [
    [1, 2, 'failed', 1, 1, [1, 1, 1]],
    [2, 1, 'failed', null, 2, null],
  ])
  await link.report(third, 1, start(), end(returned(null), 1))
})

test('a failure stays given when its attempt is lost, and when it is that of a child', async () => {
  const { agent, link } = current()
  const lost = await begun()
  await link.report(lost, 2, paid(1, FAILED), delivered([1, 1]), killed())
  const second = await next(lost.run)
  assert.deepEqual(failuresOf(second), [[1, 1, 'failed', 1, 1, null]])
  await link.report(second, 1, start(), end(returned(null), 1))
  const parent = await begun()
  await link.report(parent, 2, calls(1, 'child'))
  const child = await takeNext(agent, link)
  await link.report(child, 2, end({ how: 'exited', exitCode: 3 }, 1))
  await link.report(parent, 3, delivered([1, 1]), threw())
  await hurry(parent.run)
  const again = await next(parent.run)
  assert.deepEqual(failuresOf(again), [[1, 1, 'failed', 1, 1, null]])
  await link.report(again, 1, start(), end(returned(null), 1))
})

test('a failure stays given where an attempt before the one that threw had got further', async () => {
  const { c, link } = current()
  const first = await begun()
  await link.report(first, 2, paid(1, FAILED), delivered([1, 1]), paid(2, DONE), killed())
  const second = await next(first.run)
  await link.report(second, 1, start(), adopted(1), delivered([1, 1]), threw())
  await hurry(first.run)
  const third = await next(first.run)
  assert.deepEqual(failuresOf(third), [
    [1, 2, 'failed', 1, 1, [1, 1, 1]],
    [2, 1, 'done', null, 0, null],
  ])
  await link.report(third, 1, start(), end(returned(null), 1))
  assert.equal((await c.call(ops.runs.get, { run: first.run })).run.status, 'completed')
})

test('what lies behind a failure that was taken back is not taken for a way that an attempt has got', async () => {
  const { c, link } = current()
  const first = await begun()
  await link.report(first, 2, paid(1, FAILED), delivered([1, 1]), paid(2, DONE), threw())
  await hurry(first.run)
  const second = await next(first.run)
  const again = said({
    op: 'close',
    entry: identity(3, 'step', { name: 'pay', hash: '', occurrence: 1, position: 1 }),
    ...FAILED,
  })
  await link.report(second, 1, start(), again, delivered([1, 3]), threw())
  await hurry(first.run)
  const third = await next(first.run)
  assert.deepEqual(failuresOf(third).at(-1), [3, 2, 'failed', null, 3, null])
  await link.report(third, 1, start(), end(returned(null), 1))
  assert.equal((await c.call(ops.runs.get, { run: first.run })).run.status, 'completed')
})

test('a failure stays given where the attempt before has called anything behind it that this one has not', async () => {
  const { link } = current()
  for (const asks of [false, true]) {
    const first = await begun()
    await link.report(first, 2, paid(1, FAILED), delivered([1, 1]), stepped(2, 'released', 'release'), killed())
    const second = await next(first.run)
    const given = [adopted(1), delivered([1, 1]), ...(asks ? [adopted(2)] : [])]
    await link.report(second, 1, start(), ...given, threw())
    await hurry(first.run)
    const third = await next(first.run)
    assert.deepEqual(failuresOf(third)[0], [1, 2, 'failed', ...(asks ? [null, 1, null] : [1, 1, [1, 1, 1]])])
    if (asks) {
      await link.report(third, 1, start(), end(returned(null), 1))
      continue
    }
    // Once: it may never ask for that.
    await link.report(third, 1, start(), adopted(1), delivered([1, 1]), threw())
    await hurry(first.run)
    const fourth = await next(first.run)
    assert.deepEqual(failuresOf(fourth)[0], [1, 3, 'failed', null, 1, null])
    await link.report(fourth, 1, start(), end(returned(null), 1))
  }
})

const stopped = () => end({ how: 'lost', reason: LOST_REASONS.shutdown }, 1)
const strayed = () => end({ how: 'blocked', mismatch: { expected: 'a', received: 'b', at: '' } }, 1)

test('an attempt that is lost, stopped or begun anew is handed as lost, and one that threw is not', async () => {
  const { c, link } = current()
  const lostOf = async (offer: Offer) => {
    const found = (records: readonly JournalRecord[]) => records.map(({ attempt, lost }) => [attempt, lost])
    const pages = await recordsAfter(c.db, offer.run, { n: 0, last: 0 })
    assert.deepEqual(found(pages), found(journalOf(offer)))
    return found(pages)
  }
  const first = await begun()
  await link.report(first, 2, stepped(1, 'a'), killed())
  const second = await next(first.run)
  await link.report(second, 1, start(), stepped(2, 'b', 'step', 1), threw())
  await hurry(first.run)
  const third = await next(first.run)
  await link.report(third, 1, start(), stepped(3, 'c', 'step', 1), stopped())
  const fourth = await next(first.run)
  assert.deepEqual(await lostOf(fourth), [
    [1, true],
    [2, false],
    [3, true],
  ])
  // Lost while it waits, the same attempt goes on, and is none that was lost when it throws.
  await link.report(fourth, 1, start(), sleeps(4, 0), parked('sleep'), evicted())
  await hurry(first.run)
  const replayed = await next(first.run)
  assert.deepEqual((await lostOf(replayed)).at(-1), [4, false])
  await link.report(replayed, 1, start(), goesOn(), threw())
  await hurry(first.run)
  const fifth = await next(first.run)
  assert.deepEqual((await lostOf(fifth)).at(-1), [4, false])
  await link.report(fifth, 1, start(), sleeps(5, 0), parked('sleep'), evicted())
  await hurry(first.run)
  await link.report(await next(first.run), 1, strayed())
  await c.call(ops.runs.restart, { run: first.run })
  const sixth = await next(first.run)
  assert.deepEqual((await lostOf(sixth)).at(-1), [5, true])
  await link.report(sixth, 1, start(), end(returned(null), 1))
})
