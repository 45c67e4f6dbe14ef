// Which of the failures that a program was given lead to what it throws.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGivenFailures } from '../../../runtime/engine/given-failures.ts'

function given() {
  const failures = createGivenFailures()
  const [a, b, c] = [new Error('a'), new Error('b'), new Error('c')]
  // By the order in which they were given, not by their numbers.
  failures.add(b, { n: 9, parent: '' })
  failures.add(a, { n: 4, parent: '' })
  failures.add(c, { n: 5, parent: '' })
  return { a, b, c, failures, behind: (thrown: unknown) => failures.behind(thrown) }
}

test('an error leads to a failure by itself, by its causes and by the errors that it gathers', () => {
  const { a, b, c, behind } = given()
  assert.deepEqual(behind(a), { first: 4, last: 4 })
  assert.deepEqual(behind(new Error('x', { cause: new TypeError('y', { cause: b }) })), { first: 9, last: 9 })
  const gathered = new AggregateError([new Error('own'), c, new Error('z', { cause: b })])
  assert.deepEqual(behind(gathered), { first: 9, last: 5 })
  assert.deepEqual(behind(new Error('x', { cause: [c, a] })), { first: 4, last: 5 })
  const suppressed = Object.assign(new Error('x'), { error: new Error('closing'), suppressed: c })
  assert.deepEqual(behind(suppressed), { first: 5, last: 5 })
})

test('the failure of a step leads to what its function was given outside of it', () => {
  const { a, b, c, failures, behind } = given()
  const bill = new Error('bill')
  failures.threw({ n: 12 }, new Error('no rates', { cause: new AggregateError([c, a]) }))
  failures.add(bill, { n: 12, parent: '' })
  assert.deepEqual(behind(bill), { first: 4, last: 12 })
  // Through several.
  const outer = new Error('outer')
  failures.threw({ n: 13 }, bill)
  failures.add(outer, { n: 13, parent: '' })
  assert.deepEqual(behind(outer), { first: 4, last: 13 })
  assert.deepEqual(behind(new AggregateError([outer, b])), { first: 9, last: 13 })
  // And through steps in steps.
  const [deep, top] = [new Error('deep'), new Error('top')]
  failures.threw({ n: 15 }, a)
  failures.add(deep, { n: 15, parent: 'top' })
  failures.threw({ n: 14 }, deep)
  failures.add(top, { n: 14, parent: '' })
  assert.deepEqual(behind(top), { first: 4, last: 14 })
  // Not to what failed inside of it, nor where it threw something else.
  const [inner, around, own] = [new Error('inner'), new Error('around'), new Error('own')]
  failures.add(inner, { n: 21, parent: 'around' })
  failures.threw({ n: 20 }, inner)
  failures.add(around, { n: 20, parent: '' })
  failures.threw({ n: 22 }, new Error('own'))
  failures.add(own, { n: 22, parent: '' })
  assert.deepEqual(
    [behind(around), behind(own)],
    [
      { first: 20, last: 20 },
      { first: 22, last: 22 },
    ],
  )
})

test('nobody knows why something else was thrown', () => {
  const { a, behind } = given()
  for (const thrown of [
    undefined,
    null,
    'a',
    7,
    {},
    { cause: a },
    new Error('a'),
    Object.assign(() => {}, { cause: a }),
  ])
    assert.equal(behind(thrown), undefined)
})

test('errors that lead to themselves, to very many others or to getters that throw are looked through', () => {
  const { a, behind } = given()
  const round = new Error('round')
  round.cause = new Error('and round', { cause: round })
  assert.equal(behind(round), undefined)
  const many = new AggregateError(Array.from({ length: 100_000 }, () => new Error('one of many')))
  assert.equal(behind(many), undefined)
  const broken = new Error('broken')
  Object.defineProperty(broken, 'cause', {
    get() {
      throw new Error('not today')
    },
  })
  assert.equal(behind(broken), undefined)
  assert.deepEqual(behind(Object.assign(broken, { errors: [a] })), { first: 4, last: 4 })
  assert.deepEqual(behind(new AggregateError([broken, a])), { first: 4, last: 4 })
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  for (const thrown of [proxy, new Error('x', { cause: proxy })]) assert.equal(behind(thrown), undefined)
  assert.deepEqual(behind(new AggregateError([proxy, a])), { first: 4, last: 4 })
})
