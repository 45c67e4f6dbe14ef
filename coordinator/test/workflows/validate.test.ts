import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonSchema } from '../../workflows/json-schema.ts'
import { validatorOf } from '../../workflows/validate.ts'
import { validateAgainst } from './validate-against.ts'

const line = {
  type: 'object',
  properties: { count: { type: 'integer', minimum: 1 }, name: { type: 'string' } },
  required: ['count'],
}
const shop: JsonSchema = {
  type: 'object',
  properties: {
    packages: { type: 'array', items: line, minItems: 1 },
    state: { enum: ['open', 'paid', null] },
    when: { type: 'string', format: 'date-time' },
    code: { type: 'string', pattern: '^[A-Z]{2}$' },
    'odd key': { type: 'string' },
    byId: { type: 'object', additionalProperties: { type: 'number' } },
    shape: {
      anyOf: [
        {
          type: 'object',
          properties: { kind: { const: 'circle' }, radius: { type: 'number' } },
          required: ['kind', 'radius'],
        },
        {
          type: 'object',
          properties: { kind: { const: 'square' }, side: { $ref: '#/$defs/Side' } },
          required: ['kind', 'side'],
        },
        { type: 'null' },
      ],
    },
  },
  required: ['packages'],
  $defs: { Side: { type: 'object', properties: { cm: { type: 'number' } }, required: ['cm'] } },
}
const packages = [{ count: 1 }]

const wrong: [value: unknown, path: string, message: RegExp][] = [
  ['x', '', /^must be an object, but is a string$/],
  [null, '', /must be an object, but is null/],
  [{}, 'packages', /^is required$/],
  [{ packages: [] }, 'packages', /fewer than 1 items/],
  [{ packages: [...packages, { count: 1, name: 3 }] }, 'packages[1].name', /must be a string, but is a number/],
  [{ packages: [{}] }, 'packages[0].count', /is required/],
  [{ packages: [{ count: 0 }] }, 'packages[0].count', />= 1, but is 0/],
  [{ packages, state: 'closed' }, 'state', /one of "open", "paid", null, but is "closed"/],
  [{ packages, when: 'today' }, 'when', /must be a date-time, but is "today"/],
  [{ packages, code: 'abc' }, 'code', /pattern/],
  [{ packages, 'odd key': 1 }, '["odd key"]', /must be a string/],
  [{ packages, byId: { 7: 'x' } }, 'byId["7"]', /must be a number/],
  [{ packages, shape: { kind: 'circle', radius: 'big' } }, 'shape.radius', /must be a number, but is a string/],
  [{ packages, shape: { kind: 'square', side: {} } }, 'shape.side.cm', /is required/],
  [{ packages, shape: { kind: 'triangle' } }, 'shape', /fits none of the shapes/],
  [{ packages, shape: 5 }, 'shape', /fits none of the shapes/],
]

for (const [value, path, message] of wrong) {
  test(`${JSON.stringify(value)} is refused at ${path === '' ? 'the root' : path}`, () => {
    const invalid = validateAgainst(shop, value)
    assert.equal(invalid?.path, path)
    assert.match(invalid?.message ?? '', message)
  })
}

test('what fits, fits, and further keys are nobody’s business', () => {
  const value = {
    packages,
    state: null,
    when: '2026-01-01T00:00:00Z',
    code: 'AB',
    shape: { kind: 'square', side: { cm: 1 } },
    more: true,
  }
  assert.equal(validateAgainst(shop, value), null)
})

test('the root can be given a name', () => {
  assert.equal(validatorOf(shop)?.({ packages: [{}] }, 'input')?.path, 'input.packages[0].count')
  assert.equal(validatorOf(shop)?.(1, 'output')?.path, 'output')
})

test('a schema that accepts everything has no validator', () => {
  for (const schema of [{}, true, { description: 'Anything.' }] as const) assert.equal(validatorOf(schema), undefined)
  assert.equal(validateAgainst({}, { any: 'thing' }), null)
})

test('a schema is compiled once', () => {
  assert.equal(validatorOf(shop), validatorOf(structuredClone(shop)))
})

test('no more than 500 validators are kept', () => {
  const schema = (n: number) => ({ type: 'string', minLength: n })
  const first = validatorOf(schema(0))
  for (let n = 1; n <= 500; n++) validatorOf(schema(n))
  assert.notEqual(validatorOf(schema(0)), first)
})

test('a pattern that backtracks for ever is stopped', () => {
  const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
  const started = performance.now()
  const invalid = validatorOf(schema)?.({ a: `${'a'.repeat(60)}b` }, 'input')
  assert.match(invalid?.message ?? '', /simplify `@pattern`/)
  assert.equal(invalid?.path, 'input')
  assert.ok(performance.now() - started < 5_000)
  assert.equal(validatorOf(schema)?.({ a: 'aaa' }), null)
})

test('values that two checks at once look at do not mix', async () => {
  const check = validatorOf({
    type: 'object',
    properties: { n: { type: 'integer' }, s: { type: 'string', pattern: '^x' } },
  })
  const results = await Promise.all([1, 'a', 2, 'b'].map(async (n) => check?.({ n })))
  assert.deepEqual(
    results.map((invalid) => invalid === null),
    [true, false, true, false],
  )
})

test('a key of the prototype is no surprise', () => {
  const schema = { type: 'object', properties: { constructor: { type: 'string' } }, required: ['constructor'] }
  assert.equal(validateAgainst(schema, {})?.path, 'constructor')
})
