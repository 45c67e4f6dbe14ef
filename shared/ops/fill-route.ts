import type { z } from 'zod'
import type { Route } from './op.ts'

/** The names in braces of a path: `/v1/runs/{run}/input` → `['run']`. */
export function pathNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
}

/** Where the fields ride that are neither in the path nor named by `inQuery`. */
export function restRidesIn(row: Route): 'query' | 'body' {
  return ['GET', 'DELETE', 'OPTIONS'].includes(row.method) ? 'query' : 'body'
}

/** Whether a field that is not in the path rides in the query. */
export function ridesInQuery(row: Route, name: string): boolean {
  return restRidesIn(row) === 'query' || (row.inQuery?.includes(name) ?? false)
}

export interface FilledRoute {
  path: string
  query: URLSearchParams
  body: Record<string, unknown> | undefined
}

/** Puts one flat object of arguments where the row says: into the path, the query or the body. */
export function fillRoute(row: Route, args: Record<string, unknown>): FilledRoute {
  const names = pathNames(row.path)
  const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(args[name])))
  const rest = Object.entries(args).filter(([name, value]) => !names.includes(name) && value !== undefined)
  const query = new URLSearchParams()
  for (const [name, value] of rest)
    if (ridesInQuery(row, name)) query.set(name, Array.isArray(value) ? value.join(',') : String(value))
  if (restRidesIn(row) === 'query') return { path, query, body: undefined }
  return { path, query, body: Object.fromEntries(rest.filter(([name]) => !ridesInQuery(row, name))) }
}

/**
 * Strings from a query, a path or a command line, decoded by the type that the schema asks for.
 * Not `z.coerce`, which reads "false" as true. What does not decode stays a string, and the schema refuses it by name.
 */
export function decodeStrings(schema: z.ZodObject, strings: Record<string, string>): Record<string, unknown> {
  const shape = schema.shape as Record<string, z.ZodType | undefined>
  return Object.fromEntries(Object.entries(strings).map(([name, text]) => [name, decode(kindOf(shape[name]), text)]))
}

/** As JSON writes numbers, with zeros in front allowed; `0x10` and ` 7` are no numbers to a person either. */
const DECIMAL = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

function decode(kind: string, text: string): unknown {
  if (kind === 'number') return DECIMAL.test(text) && Number.isFinite(Number(text)) ? Number(text) : text
  if (kind === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (kind === 'array') return text === '' ? [] : text.split(',')
  return text
}

/** The kind of a schema below its `optional`, `default` and `nullable`. */
function kindOf(schema: z.ZodType | undefined): string {
  let inner = schema as { def?: { type: string; innerType?: z.ZodType } } | undefined
  while (inner?.def?.innerType) inner = inner.def.innerType
  const kind = inner?.def?.type ?? 'string'
  return kind === 'int' ? 'number' : kind
}
