import type { z } from 'zod'
import type { AnyOp } from './op.ts'

/** The names in braces of a path: `/v1/runs/{run}/input` → `['run']`. */
export function pathNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
}

/** Where the fields that are not in the path ride. */
export function restRidesIn(row: AnyOp): 'query' | 'body' {
  return row.method === 'GET' || row.method === 'DELETE' ? 'query' : 'body'
}

export interface Placed {
  path: string
  query: URLSearchParams
  body: Record<string, unknown> | undefined
}

/** Puts one flat object of arguments where the row says: into the path, the query or the body. */
export function place(row: AnyOp, args: Record<string, unknown>): Placed {
  const names = pathNames(row.path)
  const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(args[name])))
  const rest = Object.entries(args).filter(([name, value]) => !names.includes(name) && value !== undefined)
  const query = new URLSearchParams()
  if (restRidesIn(row) === 'body') return { path, query, body: Object.fromEntries(rest) }
  for (const [name, value] of rest) query.set(name, Array.isArray(value) ? value.join(',') : String(value))
  return { path, query, body: undefined }
}

/**
 * Strings from a query, a path or a command line, decoded by the type that the schema asks for.
 * Not `z.coerce`, which reads "false" as true. What does not decode stays a string, and the schema refuses it by name.
 */
export function decodeStrings(schema: z.ZodObject, strings: Record<string, string>): Record<string, unknown> {
  const shape = schema.shape as Record<string, z.ZodType | undefined>
  return Object.fromEntries(Object.entries(strings).map(([name, text]) => [name, decode(kindOf(shape[name]), text)]))
}

function decode(kind: string, text: string): unknown {
  if (kind === 'number') return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
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
