// What the next attempt is handed of failures where it is known which of them the one before has thrown.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LedBy } from '@windlass/shared/model/ending.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { end, returned, start, takeNext } from '../../_kit/agent.ts'
import { calls, delivered, failuresOf, identity, said, sleeps, stepped } from '../../_kit/journal.ts'
import { journalStage } from '../../_kit/journal-crew.ts'

const retries = { crash: 10, error: { max: 10, delay: '1h' } }
const { current, begun, next, hurry } = journalStage([{ slug: 'any', descriptor: { retries } }, { slug: 'child' }])

const threw = (ledBy: LedBy) => end({ how: 'threw', error: { name: 'Error', message: 'no', ledBy } }, 1)

const refused = (n: number, name: string, parent = ''): Entry =>
  said({
    op: 'close',
    entry: identity(n, 'step', { name, parent, hash: '' }),
    state: 'failed',
    result: '{"name":"Error","message":"no"}',
  })

test('what an attempt had got past before the failure that it threw is carried to the next one', async () => {
  const { link } = current()
  const first = await begun()
  const inside = [refused(1, 'inner', 'outer'), delivered([1, 1, 1])]
  const card = [refused(2, 'card'), delivered([2, 2, 2]), stepped(3, 'paid', 'invoice'), delivered([3, 3, 3])]
  const mail = [refused(4, 'mail'), delivered([4, 4, 4]), refused(5, 'later'), delivered([5, 5, 5])]
  await link.report(first, 2, ...inside, ...card, ...mail, threw({ first: 4, last: 4 }))
  await hurry(first.run)
  const second = await next(first.run)
  assert.deepEqual(failuresOf(second), [
    [1, 1, 'failed', 1, 1, null],
    [2, 1, 'failed', null, 0, [1, 2, 2]],
    [3, 1, 'done', 3, 3, null],
    [4, 1, 'failed', 4, 4, null],
    [5, 1, 'failed', 5, 5, null],
  ])
  // It is given that again, and throws by it: what had been bought behind it is not left behind at once.
  await link.report(second, 1, start(), said({ op: 'adopt', n: 2, position: 1 }), delivered([1, 2, 1]))
  const tidied = stepped(6, 'tidied', 'tidy', 2)
  await link.report(second, 4, tidied, delivered([2, 6, 2]), threw({ first: 2, last: 2 }))
  await hurry(first.run)
  const third = await next(first.run)
  assert.deepEqual(failuresOf(third)[1], [2, 2, 'failed', 1, 1, [1, 2, 2]])
  await link.report(third, 1, start(), end(returned(null), 1))
})

test('a failure behind which nothing was bought is tried again with the one that the program threw', async () => {
  const { agent, link } = current()
  const ways = [
    { behind: [refused(2, 'secondary')], isCarried: false },
    { behind: [sleeps(2, 0), refused(3, 'secondary')], isCarried: false },
    { behind: [stepped(2, 'paid', 'inside'), refused(3, 'secondary')], isCarried: true },
    { behind: [calls(2, 'child'), refused(3, 'secondary')], isCarried: true, hasChild: true },
  ]
  for (const { behind, isCarried, hasChild = false } of ways) {
    const first = await begun()
    const reason = behind.length + 1
    const given = delivered([2, reason, reason])
    await link.report(first, 2, refused(1, 'primary'), delivered([1, 1, 1]), ...behind)
    if (hasChild) await link.report(await takeNext(agent, link), 1, start(), end(returned(null), 1))
    await link.report(first, 4 + behind.length, given, threw(reasonOf(reason)))
    await hurry(first.run)
    const second = await next(first.run)
    assert.deepEqual(failuresOf(second)[0], [1, 1, 'failed', ...(isCarried ? [null, 0, [1, 1, 1]] : [1, 1, null])])
    await link.report(second, 1, start(), end(returned(null), 1))
  }
})

const reasonOf = (n: number): LedBy => ({ first: n, last: n })

test('the failure that was given last is taken back where it is known to have led to the throw', async () => {
  const { link } = current()
  for (const last of [1, 2]) {
    const first = await begun()
    await link.report(first, 2, refused(1, 'a'), refused(2, 'b'), delivered([1, 1, 2], [2, 2, 2]))
    await link.report(first, 5, threw({ first: 1, last }))
    await hurry(first.run)
    const second = await next(first.run)
    assert.deepEqual(failuresOf(second), [
      [1, 1, 'failed', 1, 2, null],
      [2, 1, 'failed', last === 2 ? null : 2, 2, null],
    ])
    await link.report(second, 1, start(), end(returned(null), 1))
  }
})

test('what leads to a throw is said by programs: whatever it is, the run is tried again', async () => {
  const { link } = current()
  for (const ledBy of [null, 'one', [], {}, { first: 1 }, { first: 0, last: 2 ** 40 }, { first: 7, last: 8 }]) {
    const first = await begun()
    await link.report(first, 2, refused(1, 'a'), delivered([1, 1, 1]), threw(ledBy as never))
    await hurry(first.run)
    const second = await next(first.run)
    const isKnown = JSON.stringify(ledBy) === '{"first":7,"last":8}'
    assert.deepEqual(failuresOf(second), [[1, 1, 'failed', isKnown ? 1 : null, 1, null]])
    await link.report(second, 1, start(), end(returned(null), 1))
  }
})
