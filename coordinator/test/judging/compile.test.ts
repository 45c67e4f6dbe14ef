import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compile } from '../../judging/compile.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'
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
  assert.equal(validateAgainst(shop, { packages: [{}] }, 'input')?.path, 'input.packages[0].count')
  assert.equal(validateAgainst(shop, 1, 'output')?.path, 'output')
})

test('the complaint about a key names the key', () => {
  const schema = { propertyNames: { maxLength: 3 } }
  assert.match(compile('written', schema)({ long: 1 }, 'answer')?.message ?? '', /than 3 characters, but is "long"/)
})

test('a key with a slash or a tilde is found again', () => {
  const schema = { type: 'object', properties: { 'a/b~c': { type: 'string' } } }
  assert.equal(validateAgainst(schema, { 'a/b~c': 5 })?.message, 'must be a string, but is a number')
})

test('definitions that share others take room once, however often they are used', () => {
  // Written out it would be a program of some 200 MB; like this it is compiled in a moment.
  const keys = Array.from({ length: 300 }, (_, n) => `k${n}`)
  const all = (ref: string) => Object.fromEntries(keys.map((key) => [key, { $ref: ref }]))
  const schema = {
    type: 'object',
    properties: all('#/$defs/Row'),
    $defs: { Row: { type: 'object', properties: all('#/$defs/Cell') }, Cell: { anyOf: [{ type: 'number' }, line] } },
  }
  const check = compile('derived', schema)
  assert.equal(check({ k7: { k9: { count: 1 } } }, 'input'), null)
  assert.equal(check({ k7: { k9: { count: 'x' } } }, 'input')?.path, 'input.k7.k9.count')
})

test('a value that fits the first branch of each union is looked at once, however deep it is', () => {
  const side = { anyOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }] }
  const node = { type: 'object', properties: { next: side } }
  const nested = (levels: number): unknown => (levels === 0 ? {} : { next: nested(levels - 1) })
  // Looked at in all ways, 60 levels would take longer than the machine lasts.
  assert.equal(validateAgainst({ ...side, $defs: { A: node, B: node } }, nested(60)), null)
})

test('what is left over by the branch of a union that fits can be refused by a schema that somebody wrote', () => {
  const branch = (name: string) => ({ properties: { [name]: { type: 'string' } }, required: [name] })
  const schema = { anyOf: [branch('a'), branch('b')], unevaluatedProperties: false }
  const check = compile('written', schema)
  assert.equal(check({ a: 'x', b: 'y' }, ''), null)
  assert.ok(check({ a: 'x', c: 'y' }, ''))
})

test('a key of the prototype is no surprise', () => {
  const schema = { type: 'object', properties: { constructor: { type: 'string' } }, required: ['constructor'] }
  assert.equal(validateAgainst(schema, {})?.path, 'constructor')
  assert.equal(validateAgainst({ type: 'object', properties: { valueOf: { type: 'string' } } }, {}), null)
  assert.equal(
    validateAgainst({ type: 'object', properties: { toString: {} }, required: ['toString'] }, {})?.path,
    'toString',
  )
})

test('a schema whose check would answer later is refused, wherever that stands', () => {
  const number = { $async: true, type: 'number' }
  const schemas: JsonSchema[] = [
    number,
    { properties: { n: number } },
    { $ref: '#/$defs/Number', $defs: { Number: number } },
    { $ref: '#/$defs/List', $defs: { List: { $dynamicAnchor: 'of', items: { $dynamicRef: '#of' }, $async: true } } },
  ]
  for (const schema of schemas) assert.throws(() => compile('written', schema), /async/, JSON.stringify(schema))
  const named = { properties: { $async: { type: 'string' } }, enum: [{ $async: 'x' }, { $async: true }] }
  assert.equal(compile('written', named)({ $async: 'x' }, ''), null)
  assert.equal(compile('written', named)({ $async: true }, 'answer')?.path, 'answer.$async')
})

/** Each of the texts that a schema may have, in the place of one that is harmless. */
function schemasOf(text: string): (JsonSchema | boolean)[] {
  const own = { $id: text, type: 'string' }
  return [
    own,
    { $ref: '#/$defs/a', $defs: { a: own } },
    { $ref: text, $defs: { a: own } },
    { items: { ...own, items: { $ref: text } } },
    { properties: { [text]: own }, required: [text], patternProperties: { [text]: own } },
    { dependentRequired: { [text]: [text] }, dependentSchemas: { [text]: own }, propertyNames: own },
    { enum: [text, { [text]: text }], const: text, default: text, examples: [text] },
    { $anchor: text, $ref: `#${text}` },
    { $dynamicAnchor: text, items: { $dynamicRef: `#${text}` } },
    { $schema: text, allOf: [{ $schema: text, $id: 'urn:a:b' }], $vocabulary: { [text]: true } },
    { $comment: text, title: text, description: text, pattern: text, format: text },
    { contentMediaType: text, contentEncoding: text, nullable: text, discriminator: { propertyName: text }, oneOf: [] },
    { type: text, minimum: text as unknown as number, [text]: text },
    { if: { $id: `${text}1`, required: [text] }, else: { enum: [text] }, not: own },
    { unevaluatedProperties: own, unevaluatedItems: own, contains: own, prefixItems: [own] },
  ]
}

test('no text of a schema is ever executed', () => {
  const act = 'globalThis.executedSchemas = (globalThis.executedSchemas ?? 0) + 1'
  const ends = [
    '*/',
    '*\\/',
    '"',
    "'",
    '`',
    '${',
    '\\',
    '\n',
    '\r',
    '\u2028',
    '\u2029',
    '-->',
    '</script>',
    '}',
    '})',
    ')',
    ']',
    ';',
  ]
  const texts = ends.flatMap((end) => [
    `x${end}${act};/*`,
    `x${end};${act}//`,
    `http://x/${end}${act}`,
    `x${end}+(${act})+${end}`,
  ])
  for (const text of [...texts, `x*/ }; ${act}; if (false) { /*`, `x\u2028${act}\u2028`]) {
    for (const schema of schemasOf(text)) {
      let check: ReturnType<typeof compile>
      try {
        check = compile('written', schema)
      } catch {
        continue
      }
      for (const value of [null, text, 'x', 1, [text], [[]], { [text]: text }, { [text]: 1 }]) check(value, 'answer')
    }
  }
  assert.equal(Reflect.get(globalThis, 'executedSchemas'), undefined)
})

test('a name that each object inherits is a reference to nothing, and no format', () => {
  const inherited = Object.getOwnPropertyNames(Object.prototype)
  assert.ok(inherited.includes('__proto__') && inherited.includes('constructor'))
  for (const name of inherited) {
    const schemas: JsonSchema[] = [
      { $ref: name },
      { $ref: `./${name}` },
      { $ref: `a/../${name}#` },
      { $ref: `%${name.charCodeAt(0).toString(16)}${name.slice(1)}` },
      { $ref: `#/${name}` },
      { $ref: `#/$defs/${name}`, $defs: {} },
      { $ref: `#/$defs/a/${name}`, $defs: { a: { type: 'string' } } },
      { properties: { a: { $ref: name } }, required: ['a'] },
      { $id: 'http://x/', $ref: name },
      { $dynamicRef: `#${name}` },
      { $dynamicAnchor: name, type: 'string' },
    ]
    for (const schema of schemas) assert.throws(() => compile('written', schema), /resolve/, JSON.stringify(schema))
    const own = { $ref: `#/$defs/${name}`, $defs: JSON.parse(`{"${name}":{"type":"string"}}`) as object } as JsonSchema
    assert.deepEqual(judged(own, ['', 1]), [true, false])
    const anchored: JsonSchema = { $ref: `#${name}`, $defs: { a: { $anchor: name, type: 'string' } } }
    assert.deepEqual(judged(anchored, ['', 1]), [true, false])
    assert.deepEqual(judged({ $id: name, type: 'string' }, ['', 1]), [true, false])
    assert.deepEqual(judged({ type: 'string', format: name }, ['', 1]), [true, false])
    assert.deepEqual(judged({ format: name }, ['', 1]), [true, true])
    const nested = { [name]: { $ref: name } }
    assert.deepEqual(judged({ enum: [nested], default: nested, examples: [nested] }, [nested, {}]), [true, false])
    const keyed = JSON.parse(`{"properties":{"${name}":{"type":"string"}},"required":["${name}"]}`) as JsonSchema
    const values = [`{"${name}":""}`, `{"${name}":1}`, '{}'].map((text) => JSON.parse(text) as unknown)
    // Ajv leaves out the property `__proto__`, but asks for it.
    assert.deepEqual(judged(keyed, values), [true, name === '__proto__', false])
  }
})

test('schemas are told apart by what is in them, and values of objects are compared', () => {
  const twice: JsonSchema = {
    $id: 'http://x/y',
    properties: { a: { $id: 'z', const: { b: [{}] } } },
    $defs: { c: { $ref: 'z' } },
  }
  assert.deepEqual(judged(twice, [{ a: { b: [{}] } }, { a: { b: [] } }]), [true, false])
  assert.deepEqual(judged({ const: { a: 1 } }, [{ a: 1 }, { a: 2 }]), [true, false])
})

function judged(schema: JsonSchema, values: unknown[]): boolean[] {
  const check = compile('written', schema)
  return values.map((value) => check(value, 'answer') === null)
}
