import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { canonicalJson } from '../canonical-json.ts'

const textOf = (value: unknown) => [...canonicalJson(value)].join('')

/** The same by sorting all fields first. Hashes of it are stored, so that not one character may change. */
function bySorting(value: unknown): string {
  return JSON.stringify(value, (_name, held: unknown) => {
    if (typeof held !== 'object' || held === null || Array.isArray(held)) return held
    return Object.fromEntries(Object.entries(held).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

test('equal values have the same text in whatever order their fields stand', () => {
  assert.equal(textOf({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}')
  assert.equal(textOf([2, 1]), '[2,1]')
  assert.notEqual(textOf({ a: 1 }), textOf({ a: '1' }))
})

test('no field is lost, whatever its name is', () => {
  assert.equal(textOf(JSON.parse('{"b":1,"__proto__":{"z":1,"a":2}}')), '{"__proto__":{"a":2,"z":1},"b":1}')
  assert.equal(textOf({ b: 1, a: undefined, 2: 1, 10: 1 }), '{"2":1,"10":1,"b":1}')
  assert.equal(textOf({ a: undefined }), '{}')
})

test('the text is that of JSON.stringify with all fields sorted', () => {
  const names = fc.oneof(fc.string(), fc.nat().map(String), fc.constantFrom('01', '4294967294', '4294967295', '-1', ''))
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.jsonValue({ maxDepth: 0 }),
      fc.array(tie('value')),
      fc.dictionary(names, tie('value')),
    ),
  }))
  fc.assert(
    fc.property(value, (some) => {
      const parsed: unknown = JSON.parse(JSON.stringify(some))
      assert.equal(textOf(parsed), bySorting(parsed))
    }),
  )
})

test('a large value comes in many pieces, none of them long', () => {
  const values = [
    Array.from({ length: 300_000 }, (_, i) => i % 10),
    Array.from({ length: 50_000 }, () => ({ b: {}, a: [] })),
    Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${(i * 7919) % 50_000}`, i])),
  ]
  for (const value of values) {
    const pieces = [...canonicalJson(value)]
    assert.equal(pieces.join(''), bySorting(value))
    assert.ok(Math.max(...pieces.map((piece) => piece.length)) < 8192)
  }
})
