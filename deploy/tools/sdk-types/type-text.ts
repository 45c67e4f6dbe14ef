// Prints JSON Schemas as types of TypeScript, as far as our own schemas go.

export interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
}

const PLAIN: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
  array: 'unknown[]',
  object: 'Record<string, unknown>',
}
const WIDTH = 110

/** The type that a schema describes; `unknown` where it says nothing. */
export function typeText(schema: Schema): string {
  const { $ref, type, anyOf, properties, additionalProperties, items } = schema
  if ($ref !== undefined) return $ref.split('/').at(-1)!
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (anyOf) return [...new Set(anyOf.map(typeText))].join(' | ')
  if (properties && Object.keys(properties).length > 0) return `{\n${fieldsText(schema)}}`
  if (typeof additionalProperties === 'object') return `Record<string, ${typeText(additionalProperties)}>`
  if (items) return `Array<${typeText(items)}>`
  if (type === undefined) return 'unknown'
  return [type].flat().map(plain).join(' | ')
}

function plain(type: string): string {
  const text = PLAIN[type]
  if (text === undefined) throw new Error(`no type of TypeScript is known for the JSON type ${type}`)
  return text
}

/** The fields of an object with what they mean. */
export function fieldsText({ properties = {}, required = [] }: Schema, optional: readonly string[] = []): string {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const mark = required.includes(name) && !optional.includes(name) ? '' : '?'
    return `${docText(schema.description)}${name}${mark}: ${typeText(schema)}\n`
  })
  return fields.join('')
}

/** A doc comment; nothing where there is nothing to say. */
export function docText(text: string | undefined): string {
  if (text === undefined) return ''
  const safe = text.replaceAll('*/', '*\\/')
  if (safe.length <= WIDTH) return `/** ${safe} */\n`
  const lines = ['']
  for (const part of safe.split(/\s+/)) {
    if (lines.at(-1)!.length + part.length > WIDTH) lines.push(part)
    else lines.push([lines.pop(), part].filter(Boolean).join(' '))
  }
  return `/**\n${lines.map((line) => ` * ${line}\n`).join('')} */\n`
}
