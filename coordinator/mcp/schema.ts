import { meaningOf } from '@windlass/shared/ops/words.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { z } from 'zod'

/** A JSON Schema, draft 2020-12, of an object. */
export interface ObjectSchema {
  type: 'object'
  properties?: Record<string, object>
  required?: string[]
  [keyword: string]: unknown
}

interface Alias {
  /** The field of the row that it stands for. */
  field: string
  description: string
}

/** Further names of fields, by operation. `args` is what the interface calls the input of a trigger. */
export const ALIASES: Readonly<Record<string, Readonly<Record<string, Alias>>>> = {
  'runs.trigger': { args: { field: 'input', description: 'Another name of `input`; give one of them.' } },
}

/** What a tool takes: the fields of its operation, but that `org` may be left out. */
export function inputSchemaOf(row: AnyOp): ObjectSchema {
  const schema = inlined(z.toJSONSchema(row.input, { io: 'input', override: plainer }))
  const properties = Object.fromEntries(
    Object.entries(schema.properties ?? {}).map(([name, property]) => [
      name,
      explained(row, name, row.method === 'GET' ? orText(property) : property),
    ]),
  )
  if (properties['org'])
    properties['org'] = { ...properties['org'], description: 'The org of the credential; may be left out.' }
  for (const [name, { description }] of Object.entries(ALIASES[row.id] ?? {})) properties[name] = { description }
  const required = (schema.required ?? []).filter((name) => name !== 'org')
  const { required: _, ...rest } = schema
  return { ...rest, properties, ...(required.length > 0 && { required }) }
}

/** A filter that takes several values takes one as plain text too. */
function orText(property: object): object {
  if (!('type' in property) || property.type !== 'array') return property
  const { description, default: preset, ...list } = property as { description?: string; default?: unknown }
  return {
    ...(description !== undefined && { description }),
    ...(preset !== undefined && { default: preset }),
    anyOf: [list, { type: 'string' }],
  }
}

/** A model reads nothing of an argument but this; what the schema itself says of it comes first. */
function explained(row: AnyOp, name: string, property: object): object {
  const description = meaningOf(row, name)
  return 'description' in property || description === undefined ? property : { ...property, description }
}

/** What a tool answers. Fields may be added to it, as everywhere. */
export function outputSchemaOf(row: AnyOp): ObjectSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(row.output, { io: 'output', override: shorter })
  return schema as ObjectSchema
}

interface Overriding {
  jsonSchema: z.core.JSONSchema.BaseSchema
  path: (string | number)[]
  zodSchema: z.core.$ZodType
}

/** That whole numbers are safe ones goes without saying. */
function plainer({ jsonSchema }: Overriding): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** Answers may gain fields. The forms of ids matter to those who send them: all schemas together are read before each talk. */
function shorter(overriding: Overriding): void {
  plainer(overriding)
  const { jsonSchema, zodSchema } = overriding
  if (zodSchema instanceof z.ZodObject && !zodSchema.def.catchall) delete jsonSchema.additionalProperties
  delete jsonSchema.pattern
  if (jsonSchema.propertyNames !== undefined) delete jsonSchema.propertyNames
}

/**
 * Without `$schema`, of which older clients know one value only: the protocol's default is 2020-12. And without `$ref`, which
 * several clients hand on to models that cannot follow it; no input of ours refers to itself.
 */
function inlined({ $schema: _, $defs = {}, ...schema }: z.core.JSONSchema.BaseSchema): ObjectSchema {
  const replace = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(replace)
    if (typeof node !== 'object' || node === null) return node
    const { $ref, ...rest } = node as { $ref?: string }
    const target = $ref === undefined ? {} : $defs[$ref.replace('#/$defs/', '')]
    return Object.fromEntries(Object.entries({ ...target, ...rest }).map(([key, inner]) => [key, replace(inner)]))
  }
  return replace(schema) as ObjectSchema
}
