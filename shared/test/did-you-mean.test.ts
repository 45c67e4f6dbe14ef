import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, editDistance, nearest } from '../did-you-mean.ts'

const keys = ['timeout', 'retries', 'schedules', 'slug', 'name']

test('one slip of the finger is understood, swapped letters included', () => {
  assert.equal(nearest('tiemout', keys), 'timeout')
  assert.equal(nearest('retrys', keys), 'retries')
  assert.equal(nearest('Schedule', keys), 'schedules')
  assert.equal(didYouMean('nam', keys), ', did you mean `name`?')
})

test('a word that resembles nothing gets no suggestion', () => {
  assert.equal(nearest('zebra', keys), undefined)
  assert.equal(nearest('x', keys), undefined)
  assert.equal(didYouMean('zebra', keys), '')
})

test('the distance counts insertions, deletions, replacements and swaps', () => {
  assert.deepEqual(
    [
      editDistance('', 'abc'),
      editDistance('abc', 'abc'),
      editDistance('abc', 'ac'),
      editDistance('abc', 'abd'),
      editDistance('abc', 'acb'),
    ],
    [3, 0, 1, 1, 1],
  )
})

test('hostile names cost no more than a few', () => {
  let looked = 0
  const names = function* () {
    for (; looked < 10_000; looked++) yield `${'a'.repeat(240)}${looked}/${'a'.repeat(245)}`
  }
  assert.equal(nearest(`${'b'.repeat(245)}/${'b'.repeat(245)}`, names()), undefined)
  assert.ok(looked < 10, `${looked} names were looked at`)
})
