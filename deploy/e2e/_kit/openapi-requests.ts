import * as fc from 'fast-check'
import type { Document, Operation, Parameter } from './openapi.ts'
import { fitting, hostile, oddBody, spoilt } from './openapi-values.ts'

const LONGEST = 1000

/** No agent is in this pool: what is triggered there stays in the queue. */
export const NOBODYS = 'nobody'

/** Things that are there, by the name of the parameter that names them. */
export type Known = Record<string, readonly string[]>

export interface Ask {
  operation: Operation
  /** With query. */
  path: string
  headers: Record<string, string>
  body: string | undefined
}

export interface RequestOptions {
  document: Document
  operations: readonly Operation[]
  known: Known
  credentials: readonly string[]
}

/** Requests to all operations alike: most fit the document, some nearly, some not at all. */
export function requests({ document, operations, known, credentials }: RequestOptions): fc.Arbitrary<Ask> {
  const credential = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...credentials) },
    { weight: 1, arbitrary: fc.constantFrom('', 'nonsense', `wl_${'a'.repeat(46)}`) },
  )
  return fc.oneof(...operations.map((operation) => requestTo(document, operation, { known, credential })))
}

function requestTo(
  document: Document,
  operation: Operation,
  { known, credential }: { known: Known; credential: fc.Arbitrary<string> },
): fc.Arbitrary<Ask> {
  const parts = operation.parameters.map((parameter) => {
    const value = valueOf(document, parameter, known[parameter.name] ?? [])
    return parameter.required ? value : seldom(2, value)
  })
  const unknownQuery = seldom(20, fc.constantFrom('surplus=1', 'a=%zz', 'b=1&b=2'))
  const body = bodyOf(document, operation, known)
  const whatever = seldom(6, fc.constantFrom('*', '"a"'))
  return fc
    .tuple(fc.tuple(...parts), unknownQuery, body, credential, whatever)
    .map(([values, more, text, key, etag]) => ({
      operation,
      path: pathWith(operation, values, more),
      headers: {
        ...headersWith(operation, values),
        ...(key !== '' && { authorization: `Bearer ${key}` }),
        ...(etag !== undefined && { 'if-none-match': etag }),
        ...(text !== undefined && { 'content-type': 'application/json' }),
      },
      body: text,
    }))
}

function valueOf(
  document: Document,
  { schema, in: location }: Parameter,
  known: readonly string[],
): fc.Arbitrary<string> {
  const fits = fitting(document, schema).map(asText)
  const odd = hostile.map(asText)
  // A path without one of its parts is another path.
  const others = fc.oneof({ weight: 3, arbitrary: fits }, { weight: location === 'path' ? 1 : 2, arbitrary: odd })
  const named = location === 'path' ? others.filter((text) => text !== '') : others
  return known.length === 0
    ? named
    : fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...known) }, { weight: 2, arbitrary: named })
}

/** Once in so many times and one. */
function seldom<T>(times: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: times, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
}

function asText(value: unknown): string {
  if (Array.isArray(value)) return value.map(asText).join(',')
  // An address of more than 4 KiB does not get as far as to the envelope.
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, LONGEST).toWellFormed()
}

function bodyOf(document: Document, operation: Operation, known: Known): fc.Arbitrary<string | undefined> {
  const { body, id, method } = operation
  if (!body) return fc.constant(method === 'GET' || method === 'DELETE' ? undefined : '{}')
  const fits = fitting(document, body)
  const json = (value: unknown) => JSON.stringify(value)
  return fc.oneof(
    { weight: 6, arbitrary: fits.map(json) },
    { weight: 2, arbitrary: likeExample(operation, known).map(json) },
    { weight: 4, arbitrary: spoilt(fits).map(json) },
    { weight: 1, arbitrary: hostile.map(json) },
    { weight: 1, arbitrary: oddBody },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: id.startsWith('workflows') ? deployable : fits.map(json) },
  )
}

/** What no schema tells, such as which fields go together: the document's example, about things that are there. */
function likeExample({ example }: Operation, known: Known): fc.Arbitrary<Record<string, unknown>> {
  return fc.nat().map((chance) => {
    const fields = Object.entries(example).map(([field, value]) => {
      // A run's `input` is no name of a question, which is what a path calls by that word.
      const [first] = typeof value === 'string' ? (known[field] ?? []) : []
      return [field, field === 'name' ? `${String(value)}-${chance}` : (first ?? value)]
    })
    return Object.fromEntries(fields)
  })
}

/** Nor this. */
const deployable = fc.constantFrom('waits', 'waits', 'made-1', 'made-2', 'made-3').map((slug) => {
  const entry = 'export async function run(input: { n?: number }): Promise<number> { return input.n ?? 1 }'
  const descriptor = JSON.stringify({ slug, pool: NOBODYS })
  const files = [
    { path: 'workflow.jsonc', content: descriptor },
    { path: 'index.ts', content: entry },
  ]
  return JSON.stringify({ files })
})

function pathWith(operation: Operation, values: readonly (string | undefined)[], more: string | undefined): string {
  let { path } = operation
  const query = more === undefined ? [] : [more]
  for (const [i, parameter] of operation.parameters.entries()) {
    const value = values[i]
    if (value === undefined) continue
    const text = encodeURIComponent(value)
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, () => text)
    if (parameter.in === 'query') query.push(`${parameter.name}=${text}`)
  }
  return query.length === 0 ? path : `${path}?${query.join('&')}`
}

function headersWith(operation: Operation, values: readonly (string | undefined)[]): Record<string, string> {
  const pairs = operation.parameters.flatMap((parameter, i) => {
    const value = values[i]?.replace(/[^\x21-\x7e]/g, '.')
    return parameter.in === 'header' && value ? [[parameter.name, value] as const] : []
  })
  return Object.fromEntries(pairs)
}
