import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from '../canonical-json.ts'

test('equal values have the same text in whatever order their fields stand', () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: 2 }], a: null }), '{"a":null,"b":[{"c":2,"d":1}]}')
  assert.equal(canonicalJson([2, 1]), '[2,1]')
  assert.notEqual(canonicalJson({ a: 1 }), canonicalJson({ a: '1' }))
})

test('no field is lost, whatever its name is', () => {
  assert.equal(canonicalJson(JSON.parse('{"b":1,"__proto__":{"z":1,"a":2}}')), '{"__proto__":{"a":2,"z":1},"b":1}')
  assert.equal(canonicalJson({ a: undefined, 2: 1, 10: 1 }), '{"2":1,"10":1}')
})

test('undefined has no text', () => {
  assert.equal(canonicalJson(undefined), undefined)
})
