import { quoted } from './next-page.ts'

/** As a program or a person may have written it: `true` takes any value, `false` takes none. */
type Given = Schema | boolean

interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Given[]
  properties?: Record<string, Given>
  required?: string[]
  items?: Given
  prefixItems?: Given[]
  additionalProperties?: Given
  $ref?: string
}

const DEEPEST = 3

/**
 * A JSON Schema in one line, in the words of TypeScript: `{ lockfile: string; name?: string }`. `any` where it cannot
 * be read: what a program wrote ends no list.
 */
export function schemaText(schema: object | boolean): string {
  try {
    return textOf(schema, 0)
  } catch {
    return 'any'
  }
}

function textOf(schema: Given, depth: number): string {
  if (typeof schema === 'boolean') return schema ? 'any' : 'never'
  const { type, properties, anyOf, $ref, prefixItems, items, additionalProperties } = schema
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? $ref
  if (anyOf) return anyOf.map((part) => textOf(part, depth)).join(' | ')
  if (properties && Object.keys(properties).length > 0) return objectText(schema, depth)
  if (prefixItems) return `[${prefixItems.map((item) => textOf(item, depth)).join(', ')}]`
  if (typeof items === 'object') return arrayText(textOf(items, depth))
  if (typeof additionalProperties === 'object') return `Record<string, ${textOf(additionalProperties, depth)}>`
  return type === undefined ? 'any' : [type].flat().map(plain).join(' | ')
}

/**
 * A JSON value of this schema to begin with, as far as it is required: `{"name":"…"}`. Nothing where any value will do,
 * or where the schema cannot be read.
 */
export function sampleOf(schema: object | boolean): unknown {
  try {
    return sampleIn(schema, { root: schema, room: MOST_SAMPLED }, 0)
  } catch {
    return undefined
  }
}

/** Definitions that name others several times grow with each level, and nobody types so much. */
const MOST_SAMPLED = 500

interface Sampling {
  root: Given
  /** How many values the sample may have yet. */
  room: number
}

function sampleIn(schema: Given, from: Sampling, depth: number): unknown {
  if (typeof schema === 'boolean') return undefined
  if (--from.room < 0) throw new RangeError('the sample is too large')
  const { type, properties, anyOf, $ref, items, required = [] } = schema
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  if ($ref !== undefined) return depth < DEEPEST ? sampleIn(definition(from.root, $ref), from, depth + 1) : null
  if (anyOf) return sampleIn(anyOf[0] ?? {}, from, depth)
  const [kind] = [type ?? []].flat()
  if (kind === 'object') {
    const needed = Object.entries(properties ?? {}).filter(([name]) => required.includes(name))
    return Object.fromEntries(needed.map(([name, inner]) => [name, sampleIn(inner, from, depth + 1) ?? null]))
  }
  if (kind === 'array')
    return typeof items !== 'object' || depth >= DEEPEST ? [] : [sampleIn(items, from, depth + 1) ?? null]
  return SIMPLE[kind ?? '']
}

const SIMPLE: Record<string, unknown> = { string: '…', number: 0, integer: 0, boolean: false, null: null }

/** `#/$defs/Name` in the document that refers to it. */
function definition(root: Given, ref: string): Given {
  const { $defs = {} } = root as { $defs?: Record<string, Given> }
  const name = ref.split('/').at(-1) ?? ''
  return Object.hasOwn($defs, name) ? $defs[name]! : {}
}

function objectText({ properties = {}, required = [] }: Schema, depth: number): string {
  if (depth >= DEEPEST) return '{ … }'
  const fields = Object.entries(properties).map(([name, schema]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
    return `${key}${required.includes(name) ? '' : '?'}: ${textOf(schema, depth + 1)}`
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
  const isSchema = typeof schema === 'boolean' || (typeof schema === 'object' && schema !== null)
  const sample = isSchema ? sampleOf(schema) : undefined
  if (typeof sample === 'string') return "'<answer>'"
  return sample === undefined || sample === null ? "'<answer as JSON>'" : quoted(JSON.stringify(sample))
}
