import * as fc from 'fast-check'
import { type Document, resolved, type Schema } from './openapi.ts'

const LONGEST = 40
const MOST_ITEMS = 4

/** What hardly any field takes. */
const ODD: readonly unknown[] = [
  null,
  true,
  '',
  0,
  -1,
  1.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  [],
  {},
  [[[]]],
  '\0',
  '\ud800',
  'x'.repeat(5000),
  '../../etc/passwd',
  "' or 1=1--",
  '%2e%2e%2f',
  { constructor: { prototype: 1 } },
]

export const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ODD) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: LONGEST }) },
)

/** Bodies that are no JSON, or no object, or not the one that `JSON.stringify` would make. */
export const oddBody = fc.constantFrom(
  '',
  '{',
  '[]',
  'null',
  '"a"',
  '{"a":1e400}',
  '{"a":9007199254740993}',
  '\ufeff{}',
  '{"__proto__":{"a":1}}',
  '{"a":1,"a":2}',
  `{"a":${'['.repeat(600)}${']'.repeat(600)}}`,
)

/** Values that fit a schema. */
export function fitting(document: Document, given: Schema): fc.Arbitrary<unknown> {
  const schema = resolved(document, given)
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return fc.oneof(...choices.map((choice) => fitting(document, choice)))
  const types = [schema.type ?? 'any'].flat()
  return fc.oneof(...types.map((type) => ofType(document, schema, type)))
}

function ofType(document: Document, schema: Schema, type: string): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return text(schema)
    case 'integer':
      return fc.maxSafeInteger().chain((any) => fc.constant(clamped(any, schema)))
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((any) => clamped(any, schema))
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array': {
      const { minItems = 0, maxItems = MOST_ITEMS } = schema
      const maxLength = Math.max(minItems, Math.min(maxItems, MOST_ITEMS))
      return fc.array(fitting(document, schema.items ?? {}), { minLength: minItems, maxLength })
    }
    case 'object':
      return record(document, schema)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

function record(document: Document, { properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, inner]) => [name, fitting(document, inner)] as const)
  return fc.record(Object.fromEntries(fields), { requiredKeys: required })
}

function text({ pattern, minLength = 0, maxLength = LONGEST }: Schema): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).map((found) => found.slice(0, maxLength))
  return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, LONGEST)) })
}

/** The same number when it lies between the bounds, else one that does. */
function clamped(
  any: number,
  { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }: Schema,
): number {
  if (any >= minimum && any <= maximum) return any
  if (Number.isFinite(minimum) && Number.isFinite(maximum)) return minimum + (Math.abs(any) % (maximum - minimum + 1))
  return Number.isFinite(minimum) ? minimum : maximum
}

/** An object with one thing wrong: a field missing, one too many, or one with another value. */
export function spoilt(whole: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(whole, fc.nat(), hostile, fc.constantFrom('drop', 'add', 'replace')).map(([value, at, odd, how]) => {
    const fields = Object.entries(value as Record<string, unknown>)
    const index = fields.length === 0 ? 0 : at % fields.length
    if (how === 'drop') return Object.fromEntries(fields.toSpliced(index, 1))
    const name = how === 'add' ? 'surplus' : (fields[index]?.[0] ?? 'surplus')
    return { ...(value as object), [name]: odd }
  })
}
