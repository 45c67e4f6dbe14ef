import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathsOf } from '../../judging/cheap.ts'
import { schemaOf } from '../../judging/schema.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'

const text = { type: 'string' }
const object = (properties: Record<string, unknown>): JsonSchema => ({ type: 'object', properties })
const union = (...anyOf: unknown[]): JsonSchema => ({ anyOf })

test('what a person writes every day is cheap', () => {
  const item = object({ name: text, price: { type: 'number', minimum: 0 }, state: { enum: ['a', 'b', null] } })
  const schema = {
    ...object({ items: { type: 'array', items: { $ref: '#/$defs/Item' } }, to: text }),
    required: ['to'],
  }
  assert.equal(pathsOf({ ...schema, $defs: { Item: item } }), 13)
  assert.equal(pathsOf(true), 1)
  assert.equal(pathsOf(union(text, { type: 'null' }, { const: { a: [1, 2] } })), 8)
})

test('a definition counts as often as it is used', () => {
  const levels = (count: number): JsonSchema => ({
    $ref: '#/$defs/L0',
    $defs: Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        `L${n}`,
        n === count - 1 ? text : union({ $ref: `#/$defs/L${n + 1}` }, { $ref: `#/$defs/L${n + 1}` }),
      ]),
    ),
  })
  assert.equal(pathsOf(levels(4)), 30)
  assert.equal(pathsOf(levels(12)), undefined)
  // Counted by looking at each way it would take as long as judging.
  assert.equal(pathsOf(levels(190)), undefined)
})

const recursive: [what: string, schema: JsonSchema][] = [
  ['itself', { $ref: '#/$defs/A', $defs: { A: object({ a: { $ref: '#/$defs/A' } }) } }],
  [
    'itself by way of another',
    {
      $ref: '#/$defs/A',
      $defs: { A: union(text, { $ref: '#/$defs/B' }), B: { type: 'array', items: { $ref: '#/$defs/A' } } },
    },
  ],
  ['the root', object({ next: { $ref: '#' } })],
]
for (const [what, schema] of recursive)
  test(`a definition that leads back to ${what} is not cheap`, () => assert.equal(pathsOf(schema), undefined))

test('a definition that leads back but is not used does not matter', () => {
  assert.equal(pathsOf({ ...text, $defs: { A: { $ref: '#/$defs/A' } } }), 1)
})

for (const keyword of [
  'pattern',
  'patternProperties',
  'uniqueItems',
  'contains',
  'if',
  'not',
  'allOf',
  'oneOf',
  'propertyNames',
  'dependentSchemas',
  'unevaluatedProperties',
  '$dynamicRef',
  '$id',
  'unheardOf',
])
  test(`a schema with \`${keyword}\` is not cheap, wherever it stands`, () => {
    assert.equal(pathsOf({ [keyword]: {} }), undefined)
    assert.equal(pathsOf(object({ a: { type: 'array', items: union(text, { [keyword]: {} }) } })), undefined)
  })

for (const ref of ['#/$defs/Missing', '#/$defs/a~1b', '#/properties/a', 'https://example.com/schema', 5])
  test(`a reference to ${ref} is not cheap`, () =>
    assert.equal(pathsOf({ ...object({ a: text, b: { $ref: ref } }), $defs: { 'a/b': text } }), undefined))

test('many parts, many ways, long lists and long texts are not cheap', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, text]))
  assert.ok(pathsOf(object(many(199))))
  assert.equal(pathsOf(object(many(200))), undefined)
  const list = (length: number) => Array.from({ length }, (_, n) => n)
  assert.equal(pathsOf({ enum: list(998) }), 1000)
  assert.equal(pathsOf({ enum: list(999) }), undefined)
  assert.equal(pathsOf({ const: list(1000) }), undefined)
  assert.equal(pathsOf({ required: list(1000) }), undefined)
  assert.equal(schemaOf('derived', { ...text, description: 'x'.repeat(20_000) })?.paths, undefined)
})

test('what others wrote is never compiled at once, and what accepts everything never at all', () => {
  assert.equal(schemaOf('derived', text)?.paths, 1)
  assert.equal(schemaOf('written', text)?.paths, undefined)
  for (const schema of [true, {}, { description: 'Anything.' }]) assert.equal(schemaOf('derived', schema), undefined)
})

test('equal schemas of one origin have one key', () => {
  assert.equal(schemaOf('derived', text)?.key, schemaOf('derived', { ...text })?.key)
  assert.notEqual(schemaOf('derived', text)?.key, schemaOf('written', text)?.key)
})
