// Which of the failures that a program was given lead to what it throws.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGivenFailures } from '../../../runtime/engine/given-failures.ts'

function given() {
  const failures = createGivenFailures()
  const [a, b, c] = [new Error('a'), new Error('b'), new Error('c')]
  // By the order in which they were given, not by their numbers.
  failures.add(b, 9)
  failures.add(a, 4)
  failures.add(c, 5)
  return { a, b, c, behind: (thrown: unknown) => failures.behind(thrown) }
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
  assert.deepEqual(behind(new AggregateError([broken, a])), { first: 4, last: 4 })
})
