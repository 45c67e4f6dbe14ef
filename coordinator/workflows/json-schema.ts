/** A JSON Schema of draft 2020-12; `{}` accepts everything. */
export type JsonSchema = { [keyword: string]: unknown }

/** The same schema with every direct sub-schema replaced. Knows the keywords that we write, and no others. */
export function mapSubschemas(schema: JsonSchema, change: (sub: JsonSchema) => JsonSchema): JsonSchema {
  const copy: JsonSchema = { ...schema }
  for (const keyword of ['items', 'additionalProperties', 'not']) {
    const sub = schema[keyword]
    if (isSchema(sub)) copy[keyword] = change(sub)
  }
  for (const keyword of ['anyOf', 'prefixItems']) {
    const list = schema[keyword]
    if (Array.isArray(list)) copy[keyword] = list.map((sub: unknown) => (isSchema(sub) ? change(sub) : sub))
  }
  const properties = schema['properties']
  if (isSchema(properties)) {
    copy['properties'] = Object.fromEntries(
      Object.entries(properties).map(([k, sub]) => [k, isSchema(sub) ? change(sub) : sub]),
    )
  }
  return copy
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
