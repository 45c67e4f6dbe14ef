import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeployError } from '../../workflows/deploy-error.ts'
import { deriveIoSchemas } from '../../workflows/io-schema-derive.ts'
import { filesOf } from '../_kit/workflow-files.ts'

async function read(source: string | Record<string, string>, entry = 'index.ts') {
  return deriveIoSchemas(filesOf(typeof source === 'string' ? { [entry]: source } : source), entry)
}

/** Schema of a value of the type, as `run` returns it. */
async function outputOf(type: string, before = '') {
  const { outputSchema } = await read(`${before}\nexport async function run(): Promise<${type}> { throw new Error() }`)
  return outputSchema
}

async function inputOf(type: string, before = '') {
  const { inputSchema } = await read(`${before}\nexport async function run(input: ${type}) {}`)
  return inputSchema
}

async function refusal(source: string): Promise<DeployError> {
  try {
    await read(source)
  } catch (error) {
    if (error instanceof DeployError) return error
    throw error
  }
  throw new Error('was accepted')
}

const cases: [type: string, schema: object, before?: string][] = [
  ['string', { type: 'string' }],
  ['number | null', { type: ['number', 'null'] }],
  ['boolean', { type: 'boolean' }],
  ['unknown', {}],
  ['any', {}],
  ['void', { type: 'null' }],
  ['{}', {}],
  ['object', { type: ['object', 'array'] }],
  ["'a'", { const: 'a' }],
  ["'a' | 'b' | null", { enum: ['a', 'b', null] }],
  ['boolean | string', { type: ['string', 'boolean'] }],
  ['`v${number}`', { type: 'string' }],
  ['Uppercase<string>', { type: 'string' }],
  ['string[]', { type: 'array', items: { type: 'string' } }],
  ['readonly (string | undefined)[]', { type: 'array', items: { type: ['string', 'null'] } }],
  [
    '[string, number?]',
    { type: 'array', prefixItems: [{ type: 'string' }, { type: ['number', 'null'] }], items: false, minItems: 1 },
  ],
  [
    '[string, ...boolean[]]',
    { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'boolean' }, minItems: 1 },
  ],
  ['Date', { type: 'string', format: 'date-time' }],
  ['Record<string, Date>', { type: 'object', additionalProperties: { type: 'string', format: 'date-time' } }],
  ['Record<number, string>', { type: 'object', additionalProperties: { type: 'string' } }],
  [
    '{ a: 1; b?: 2; c: 3 | undefined; d: unknown }',
    object({ a: { const: 1 }, b: { const: 2 }, c: { const: 3 }, d: {} }, 'a'),
  ],
  ['E | N', { enum: [0, 1, 'x'] }, "enum E { A, B } enum N { X = 'x' }"],
  ["string & { brand: 'id' }", { type: 'string' }],
  ['{ a: string } & { b: string }', object({ a: { type: 'string' }, b: { type: 'string' } }, 'a', 'b')],
  ['Pick<{ a: string; b: string }, "a">', object({ a: { type: 'string' } }, 'a')],
  [
    'Page<Person>',
    object(
      {
        items: { type: 'array', items: object({ name: { type: 'string' } }, 'name') },
        next: { type: ['string', 'null'] },
      },
      'items',
      'next',
    ),
    'interface Page<T> { items: T[]; next: string | null } type Person = { name: string }',
  ],
  [
    "{ kind: 'a'; x: number } | { kind: 'b' }",
    {
      anyOf: [
        object({ kind: { const: 'a' }, x: { type: 'number' } }, 'kind', 'x'),
        object({ kind: { const: 'b' } }, 'kind'),
      ],
    },
  ],
  ['Money', { type: 'string' }, 'class Money { cents = 1; toJSON() { return String(this.cents) } }'],
  ['URL', { type: 'string' }],
  [
    'Point',
    object({ x: { type: 'number' } }, 'x'),
    'class Point { #secret = 1; x = 2; get y() { return 1 } move() {} }',
  ],
  ['ReturnType<typeof make>', object({ id: { type: 'number' } }, 'id'), 'const make = () => ({ id: 1 })'],
]

function object(properties: object, ...required: string[]) {
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) }
}

for (const [type, schema, before] of cases) {
  test(`${type} is described as JSON carries it`, async () => assert.deepEqual(await outputOf(type, before), schema))
}

test('a type that contains itself becomes a definition', async () => {
  const tree = object({ children: { type: 'array', items: { $ref: '#/$defs/Tree' } } }, 'children')
  assert.deepEqual(await outputOf('Tree', 'interface Tree { children: Tree[] }'), {
    $ref: '#/$defs/Tree',
    $defs: { Tree: tree },
  })
})

test('a type may have a name that every object has', async () => {
  const schema = await outputOf('{ x: __proto__; y: __proto__ }', 'type __proto__ = { a: string }')
  assert.deepEqual(Object.keys((schema as { $defs: object }).$defs), ['Type'])
})

test('types that are used again and again are written once', async () => {
  const levels = Array.from({ length: 20 }, (_, n) => `type T${n} = { a: T${n + 1}; b: T${n + 1} }`).join('\n')
  const schema = await outputOf('T0', `${levels}\ntype T20 = { leaf: string }`)
  assert.ok(JSON.stringify(schema).length < 5_000)
})

test('a type that unfolds for ever is cut off and said so', async () => {
  const { warnings } = await read(
    'interface Box<T> { value: T; inner?: Box<Box<T>> }\nexport function run(): Box<string> { throw 1 }',
  )
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]?.message ?? '', /too deep or too large/)
})

test('doc comments become descriptions and bounds', async () => {
  const schema = await inputOf(
    'Input',
    `/** What to do. */
     interface Input {
       /**
        * How many.
        * @integer
        * @minimum 1
        * @maximum 5
        * @default 3
        */
       count?: number
       /**
        * @format email
        * @maxLength 50
        * @example "a@example.com"
        */
       to: string | null
       /** @pattern ^[a-z]{2}$ */
       code: string
       /**
        * @minItems 1
        * @deprecated
        */
       list: string[]
     }`,
  )
  assert.deepEqual(schema, {
    description: 'What to do.',
    type: 'object',
    properties: {
      count: { description: 'How many.', type: 'integer', minimum: 1, maximum: 5, default: 3 },
      to: { type: ['string', 'null'], format: 'email', maxLength: 50, examples: ['a@example.com'] },
      code: { type: 'string', pattern: '^[a-z]{2}$' },
      list: { type: 'array', items: { type: 'string' }, minItems: 1, deprecated: true },
    },
    required: ['to', 'code', 'list'],
  })
})

test('a doc tag that does not fit its type is left out and said so', async () => {
  const { inputSchema, warnings } = await read(`interface In {
    /** @minimum 1 */
    a: string
    /** @format datetime */
    b: string
  }
  export function run(input: In) {}`)
  assert.deepEqual(inputSchema, object({ a: { type: 'string' }, b: { type: 'string' } }, 'a', 'b'))
  assert.match(warnings[0]?.message ?? '', /`@minimum` on `input.a` has no effect/)
  assert.match(warnings[1]?.message ?? '', /did you mean `date-time`\?/)
})

test('a pattern that is no regular expression and a bound that is no number stop the deploy', async () => {
  const tagged = (tag: string, type: string) =>
    `interface In {\n /** ${tag} */\n a: ${type}\n}\nexport function run(input: In) {}`
  const pattern = await refusal(tagged('@pattern ([a-z', 'string'))
  assert.equal(pattern.detail.path, 'input.a')
  assert.match(pattern.message, /no regular expression/)
  assert.match((await refusal(tagged('@minLength many', 'string'))).message, /write a whole number/)
})

for (const [type, path, hint] of [
  ['{ counts: Map<string, number> }', 'output.counts', /Map.*plain object/],
  ['{ a: { b: Set<string>[] } }', 'output.a.b[]', /Set.*array/],
  ['{ n: bigint }', 'output.n', /bigint.*string/],
  ['{ "x y": () => void }', 'output["x y"]', /function/],
  ['Record<string, RegExp>', 'output[*]', /RegExp/],
  ['{ data: Uint8Array }', 'output.data', /base64/],
  ['{ later: () => Promise<1> } | null', 'output.later', /function/],
  ['[TypeError]', 'output[]', /message/],
] as const) {
  test(`${type} has no JSON form and is refused at ${path}`, async () => {
    const error = await refusal(`export async function run(): Promise<${type}> { throw 1 }`)
    assert.equal(error.detail.path, path)
    assert.deepEqual([error.detail.file, error.detail.line], ['index.ts', 1])
    assert.match(error.message, hint)
  })
}

test("a customer's own class by the name of Map is data like any other", async () => {
  assert.deepEqual(
    await outputOf('M', 'class Map { size = 1 }\ntype M = Map'),
    object({ size: { type: 'number' } }, 'size'),
  )
})

test('what JSON cannot bring in is refused as input, a Date is warned about', async () => {
  assert.match((await refusal('export function run(input: { at: URL }) {}')).message, /`input.at` is a URL/)
  assert.match((await refusal('export function run(input: { go(): void }) {}')).message, /`input.go` is a function/)
  const { inputSchema, warnings } = await read('export function run(input: Date) {}')
  assert.deepEqual(inputSchema, { type: 'string', format: 'date-time' })
  assert.match(warnings[0]?.message ?? '', /arrives as the string/)
})

test('a parameter that may be left out takes null', async () => {
  const may = { type: ['string', 'null'] }
  assert.deepEqual((await read('export function run(input?: string) {}')).inputSchema, may)
  assert.deepEqual((await read('export function run(input = "x") {}')).inputSchema, may)
  assert.deepEqual((await read('export function run() {}')).inputSchema, {})
})

test('run may be an arrow function, generic, inferred, overloaded, or from another file', async () => {
  assert.deepEqual(
    (await read('export const run = async <T extends { id: string }>(input: T) => [input.id]')).outputSchema,
    { type: 'array', items: { type: 'string' } },
  )
  assert.deepEqual(
    (await read('export const run = async <T extends { id: string }>(input: T) => 1')).inputSchema,
    object({ id: { type: 'string' } }, 'id'),
  )
  assert.deepEqual(
    (
      await read({
        'index.ts': `export { work as run } from './lib/work.js'`,
        'lib/work.ts': 'export function work() { return 1 }',
      })
    ).outputSchema,
    { type: 'number' },
  )
  assert.deepEqual(
    (
      await read(
        'export function run(a: 1): 1\nexport function run(a: number): number\nexport function run(a: number) { return a }',
      )
    ).inputSchema,
    { type: 'number' },
  )
})

test('plain JavaScript is read with the types of its comments', async () => {
  const { inputSchema } = await read(
    {
      'index.js':
        '/** @param {{ a: string, b?: number }} input */\nexport function run(input) { return input.a.length }',
    },
    'index.js',
  )
  assert.deepEqual(inputSchema, object({ a: { type: 'string' }, b: { type: 'number' } }, 'a'))
})

test('types that a package does not bring accept everything, those it brings are read', async () => {
  const source = `import type { User } from 'users'; export function run(input: User) {}`
  const { warnings, ...schemas } = await read(source)
  assert.deepEqual(schemas, { inputSchema: {}, outputSchema: { type: 'null' } })
  assert.match(warnings[0]!.message, /^the type of `input` comes from an npm package \(`users`\)/)
  const { inputSchema } = await read({
    'index.ts': source,
    'vendor/users.d.mts': 'export interface User { name: string }',
  })
  assert.deepEqual(inputSchema, object({ name: { type: 'string' } }, 'name'))
})

test('a type error is a warning with its place, not a refusal', async () => {
  const { outputSchema, warnings } = await read({
    'index.ts': `import { a } from './a'\nexport const run = () => a`,
    'a.ts': '\nexport const a: number = "x"',
  })
  assert.deepEqual(outputSchema, { type: 'number' })
  assert.deepEqual(warnings, [
    { message: "Type 'string' is not assignable to type 'number'.", file: 'a.ts', line: 2, column: 14 },
  ])
})

test('a run that is no function is refused', async () => {
  assert.match((await refusal('export const run = 5')).message, /`run` in index.ts is not a function/)
})
