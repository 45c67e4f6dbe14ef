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
