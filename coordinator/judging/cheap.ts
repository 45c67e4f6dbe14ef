import type { JsonSchema } from '../workflows/json-schema.ts'

/** More parts than that make a schema expensive to compile. */
const MOST_NODES = 200
/** More ways through a schema make it expensive to apply. */
const MOST_PATHS = 1000

/**
 * Counts the ways, at most, on which a part of a value meets a part of the schema: the size of the schema with every
 * `$ref` written out. Returns undefined where that is not known to be small: a definition that leads back to itself,
 * more than 1000 ways, more than 200 parts, or a keyword that may take more than one look at each part of the value.
 */
export function pathsOf(schema: JsonSchema | boolean): number | undefined {
  try {
    return walk(schema)
  } catch (error) {
    if (error instanceof NotCheap) return undefined
    throw error
  }
}

class NotCheap extends Error {}

/** Keywords for readers: no value is refused for them. */
export const COMMENTS = ['$schema', 'title', 'description', 'default', 'examples', 'deprecated']

/** Keywords whose values are no schemas; looking at one takes one step. */
const PLAIN = new Set([
  ...COMMENTS,
  'type',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'format',
])

function walk(root: JsonSchema | boolean): number {
  let nodes = 0
  const definitions = definitionsOf(root)
  /** Number of ways through each definition; undefined while it is being counted. */
  const known = new Map<string, number | undefined>()

  function pathsOfDefinition(ref: unknown): number {
    const name = typeof ref === 'string' && ref.startsWith('#/$defs/') ? ref.slice('#/$defs/'.length) : undefined
    // Escaped names are none of ours.
    if (name === undefined || /[~%/]/.test(name) || !Object.hasOwn(definitions, name)) throw new NotCheap()
    if (!known.has(name)) {
      known.set(name, undefined)
      known.set(name, pathsOfNode(definitions[name]))
    }
    const paths = known.get(name)
    if (paths === undefined) throw new NotCheap()
    return paths
  }

  function pathsOfNode(schema: unknown): number {
    if (typeof schema === 'boolean') return 1
    if (!isObject(schema) || ++nodes > MOST_NODES) throw new NotCheap()
    let paths = 1
    for (const [keyword, value] of Object.entries(schema)) {
      paths += pathsOfKeyword(keyword, value)
      if (paths > MOST_PATHS) throw new NotCheap()
    }
    return paths
  }

  function pathsOfKeyword(keyword: string, value: unknown): number {
    if (PLAIN.has(keyword)) return 0
    switch (keyword) {
      case '$defs':
        return 0
      case '$ref':
        return pathsOfDefinition(value)
      case 'required':
        return listOf(value).length
      case 'const':
      case 'enum':
        return sizeOf(value)
      case 'items':
      case 'additionalProperties':
        return pathsOfNode(value)
      case 'anyOf':
      case 'prefixItems':
        return sum(listOf(value), pathsOfNode)
      case 'properties':
        if (!isObject(value)) throw new NotCheap()
        return sum(Object.values(value), pathsOfNode)
      default:
        throw new NotCheap()
    }
  }

  return pathsOfNode(root)
}

function definitionsOf(root: JsonSchema | boolean): Record<string, unknown> {
  const definitions = typeof root === 'object' ? root['$defs'] : undefined
  return isObject(definitions) ? definitions : {}
}

/** Counts the values that a value is made of, itself included. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return 1 + sum(Object.values(value), sizeOf)
}

function sum<T>(list: readonly T[], count: (item: T) => number): number {
  let total = 0
  for (const item of list) {
    total += count(item)
    if (total > MOST_PATHS) throw new NotCheap()
  }
  return total
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new NotCheap()
  return value as readonly unknown[]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
