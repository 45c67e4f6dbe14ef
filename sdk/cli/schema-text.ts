import { quoted } from './next-page.ts'

interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema | boolean
  prefixItems?: Schema[]
  additionalProperties?: Schema | boolean
  $ref?: string
}

const DEEPEST = 3

/** A JSON Schema in one line, in the words of TypeScript: `{ lockfile: string; name?: string }`. */
export function schemaText(schema: object, depth = 0): string {
  const { type, properties, anyOf, $ref, prefixItems, items, additionalProperties } = schema as Schema
  if ('const' in schema) return JSON.stringify(schema.const)
  if ('enum' in schema) return (schema.enum as unknown[]).map((value) => JSON.stringify(value)).join(' | ')
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? $ref
  if (anyOf) return anyOf.map((part) => schemaText(part, depth)).join(' | ')
  if (properties && Object.keys(properties).length > 0) return objectText(schema, depth)
  if (prefixItems) return `[${prefixItems.map((item) => schemaText(item, depth)).join(', ')}]`
  if (typeof items === 'object') return arrayText(schemaText(items, depth))
  if (typeof additionalProperties === 'object') return `Record<string, ${schemaText(additionalProperties, depth)}>`
  return type === undefined ? 'any' : [type].flat().map(plain).join(' | ')
}

/**
 * A JSON value of this schema to begin with, as far as it is required: `{"name":"…"}`. Nothing where any value will do.
 */
export function sampleOf(schema: object, root: object = schema, depth = 0): unknown {
  const { type, properties, anyOf, $ref, items, required = [] } = schema as Schema
  if ('const' in schema) return schema.const
  if ('enum' in schema) return (schema.enum as unknown[])[0]
  if ($ref !== undefined) return depth < DEEPEST ? sampleOf(definition(root, $ref), root, depth + 1) : null
  if (anyOf) return sampleOf(anyOf[0] ?? {}, root, depth)
  const [kind] = [type ?? []].flat()
  if (kind === 'object') {
    const needed = Object.entries(properties ?? {}).filter(([name]) => required.includes(name))
    return Object.fromEntries(needed.map(([name, inner]) => [name, sampleOf(inner, root, depth + 1) ?? null]))
  }
  if (kind === 'array')
    return typeof items !== 'object' || depth >= DEEPEST ? [] : [sampleOf(items, root, depth + 1) ?? null]
  return SIMPLE[kind ?? '']
}

const SIMPLE: Record<string, unknown> = { string: '…', number: 0, integer: 0, boolean: false, null: null }

/** `#/$defs/Name` in the document that refers to it. */
function definition(root: object, ref: string): object {
  const { $defs = {} } = root as { $defs?: Record<string, object> }
  return $defs[ref.split('/').at(-1) ?? ''] ?? {}
}

function objectText({ properties = {}, required = [] }: Schema, depth: number): string {
  if (depth >= DEEPEST) return '{ … }'
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
    return `${key}${required.includes(name) ? '' : '?'}: ${schemaText(schema, depth + 1)}`
  })
  return `{ ${fields.join('; ')} }`
}

function arrayText(item: string): string {
  return item.includes(' | ') ? `(${item})[]` : `${item}[]`
}

function plain(type: string): string {
  return type === 'array' ? 'any[]' : type
}

/** An answer to begin with, as a shell takes it. A question that takes a string takes plain text. */
export function answerSample(schema: unknown): string {
  const sample = typeof schema === 'object' && schema !== null ? sampleOf(schema) : undefined
  if (typeof sample === 'string') return "'<answer>'"
  return sample === undefined || sample === null ? "'<answer as JSON>'" : quoted(JSON.stringify(sample))
}
