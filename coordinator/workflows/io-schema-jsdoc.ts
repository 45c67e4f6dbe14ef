import ts from './typescript-api.cjs'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { NotJson } from './io-schema-fault.ts'
import { isJsonFormat, JSON_FORMATS } from '../judging/json-formats.ts'
import type { JsonSchema } from './json-schema.ts'

const APPLIES_TO: Record<string, string> = {
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  multipleOf: 'number',
  minLength: 'string',
  maxLength: 'string',
  pattern: 'string',
  minItems: 'array',
  maxItems: 'array',
  uniqueItems: 'array',
}
const COUNTS = ['minLength', 'maxLength', 'minItems', 'maxItems']
const MAX_PATTERN_LENGTH = 1_000

/** The field that a comment stands on, and whom to tell of a tag that does nothing. */
type DocContext = { at: string; warn: (message: string) => void }

/** What a doc comment adds to the schema of the thing it stands on. */
export function withDocs(
  schema: JsonSchema,
  symbol: ts.Symbol,
  context: DocContext & { checker: ts.TypeChecker },
): JsonSchema {
  const { checker } = context
  let documented = schema
  const description = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim()
  if (description !== '') documented = { ...documented, description }
  for (const tag of symbol.getJsDocTags(checker)) {
    documented = applyTag(documented, tag.name, ts.displayPartsToString(tag.text).trim(), context)
  }
  return documented
}

function applyTag(schema: JsonSchema, tag: string, text: string, context: DocContext): JsonSchema {
  if (tag === 'deprecated') return { ...schema, deprecated: true }
  if (tag === 'title') return text === '' ? schema : { ...schema, title: text }
  if (tag === 'default' || tag === 'example') return withValue(schema, tag, text)
  const constraint = constraintOf(tag, text, context)
  if (!constraint) return schema
  const constrained = constrain(schema, constraint.type, constraint.keywords)
  if (!constrained) context.warn(`\`@${tag}\` on \`${context.at}\` has no effect: it speaks of a ${constraint.type}`)
  return constrained ?? schema
}

type Constraint = { type: string; keywords: JsonSchema }

function constraintOf(tag: string, text: string, context: DocContext): Constraint | undefined {
  if (tag === 'integer') return { type: 'number', keywords: { type: 'integer' } }
  if (tag === 'format') return formatOf(text, context)
  const type = APPLIES_TO[tag]
  if (type === undefined) return undefined
  if (tag === 'uniqueItems') return { type, keywords: { uniqueItems: true } }
  return {
    type,
    keywords: { [tag]: tag === 'pattern' ? patternOf(text, context.at) : numberOf(tag, text, context.at) },
  }
}

/** Puts the keywords on the part of the schema that they speak of: itself, or a branch of a union. */
function constrain(schema: JsonSchema, type: string, keywords: JsonSchema): JsonSchema | undefined {
  const own = Array.isArray(schema['type']) ? schema['type'] : [schema['type']]
  if (own.includes(type) || (type === 'number' && own.includes('integer')))
    return { ...schema, ...keywords, ...typeOf(own, keywords) }
  const branches = schema['anyOf']
  if (!Array.isArray(branches)) return undefined
  const changed = branches.map((branch: JsonSchema) => constrain(branch, type, keywords))
  if (changed.every((branch) => branch === undefined)) return undefined
  return { ...schema, anyOf: branches.map((branch: JsonSchema, index) => changed[index] ?? branch) }
}

/** `@integer` narrows a number and leaves the other types of a union alone. */
function typeOf(own: unknown[], keywords: JsonSchema): JsonSchema {
  const narrowed =
    keywords['type'] === undefined ? own : own.map((type) => (type === 'number' ? keywords['type'] : type))
  return { type: narrowed.length === 1 ? narrowed[0] : narrowed }
}

function formatOf(text: string, { at, warn }: DocContext): Constraint | undefined {
  if (isJsonFormat(text)) return { type: JSON_FORMATS[text], keywords: { format: text } }
  warn(`\`@format ${text}\` on \`${at}\` is not a format that is checked${didYouMean(text, Object.keys(JSON_FORMATS))}`)
  return undefined
}

function numberOf(tag: string, text: string, at: string): number {
  const value = text === '' ? Number.NaN : Number(text)
  const fits = COUNTS.includes(tag) ? Number.isSafeInteger(value) && value >= 0 : Number.isFinite(value)
  if (!fits)
    throw new NotJson(
      at,
      `has \`@${tag} ${text}\`: write a ${COUNTS.includes(tag) ? 'whole number' : 'number'} behind the tag`,
    )
  if (tag === 'multipleOf' && value <= 0) throw new NotJson(at, `has \`@multipleOf ${text}\`: it must be above 0`)
  return value
}

function patternOf(text: string, at: string): string {
  if (text === '' || text.length > MAX_PATTERN_LENGTH)
    throw new NotJson(at, `has a \`@pattern\` of no use: write 1 to ${MAX_PATTERN_LENGTH} characters`)
  try {
    new RegExp(text, 'u')
    return text
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new NotJson(at, `has a \`@pattern\` that is no regular expression: ${error.message}`)
    throw error
  }
}

/** `@default` and `@example` hold JSON; anything else in them is prose for readers of the source. */
function withValue(schema: JsonSchema, tag: 'default' | 'example', text: string): JsonSchema {
  const value = fromJson(text)
  if (value === undefined) return schema
  if (tag === 'default') return { ...schema, default: value }
  const others: unknown[] = Array.isArray(schema['examples']) ? schema['examples'] : []
  return { ...schema, examples: [...others, value] }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
