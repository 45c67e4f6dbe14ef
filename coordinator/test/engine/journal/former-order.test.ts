// In which order results were given to attempts before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { recordsAfter } from '../../../engine/store/journal.ts'
import { end, returned, start } from '../../_kit/agent.ts'
import { delivered, journalOf, said, stepped } from '../../_kit/journal.ts'
import { journalStage } from '../../_kit/journal-crew.ts'

const { current, begun, next } = journalStage([{ slug: 'any', descriptor: { retries: { crash: 10 } } }])
const killed = (): Parameters<typeof end>[0] => ({ how: 'killed', signal: 'SIGKILL' })

test('what an attempt was given stays in its order over attempts that take it over and are given nothing', async () => {
  const { c, link } = current()
  const first = await begun()
  await link.report(first, 2, stepped(1, 'quick'), stepped(2, 'quicker'), stepped(3, 'new'), delivered([1, 2], [2, 1]))
  await link.report(first, 6, end(killed(), 1))
  const formerOf = (offer: Offer) =>
    journalOf(offer).map(({ n, attempt, delivered: order, former }) => [n, attempt, order, former])
  const taken = [said({ op: 'adopt', n: 1, position: 1 }), said({ op: 'adopt', n: 3, position: 2 })]
  const second = await next(first.run)
  assert.deepEqual(formerOf(second), [
    [1, 1, 2, null],
    [2, 1, 1, null],
    [3, 1, null, null],
  ])
  await link.report(second, 1, start(), ...taken, end(killed(), 1))
  const third = await next(first.run)
  assert.deepEqual(formerOf(third), [
    [1, 2, null, [1, 2, 1]],
    [2, 1, 1, null],
    [3, 2, null, null],
  ])
  const pages = await recordsAfter(c.db, first.run, { n: 0, last: 0 })
  assert.deepEqual([...pages], journalOf(third))
  await link.report(third, 1, start(), ...taken, end(killed(), 1))
  const fourth = await next(first.run)
  assert.deepEqual(formerOf(fourth), [
    [1, 3, null, [1, 2, 1]],
    [2, 1, 1, null],
    [3, 3, null, null],
  ])
  // What it is given counts from then on.
  await link.report(fourth, 1, start(), ...taken, delivered([1, 3], [2, 1]), end(killed(), 1))
  const fifth = await next(first.run)
  await link.report(fifth, 1, start(), ...taken, end(killed(), 1))
  const sixth = await next(first.run)
  assert.deepEqual(formerOf(sixth), [
    [1, 5, null, [4, 2, 1]],
    [2, 1, 1, null],
    [3, 5, null, [4, 1, 3]],
  ])
  await link.report(sixth, 1, start(), end(returned(null), 1))
})
