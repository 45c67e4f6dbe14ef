/**
 * Ajv looks references up in plain objects, which inherit `constructor`, `toString` and others: such a name would be
 * found there, and fit every value. Here it refers to nothing, as any other that nobody has defined.
 */
import type { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonSchema } from '../workflows/json-schema.ts'

/** What Ajv knows by name is what was given to it. */
export function knowNoHeirs(ajv: Ajv2020): void {
  for (const known of [ajv.refs, ajv.schemas]) Object.setPrototypeOf(known, null)
  const uris = ajv.opts.uriResolver
  // Resolved references are kept by name in an object for each schema, which is out of reach.
  const resolve = (base: string, path: string) => {
    const uri = uris.resolve(base, path)
    if (isInherited(uri)) throw new Error(`can't resolve reference ${path}: the name is taken, choose another`)
    return uri
  }
  ajv.opts.uriResolver = { ...uris, resolve }
}

/** Values that are compared with others, by their prototypes too, or only shown. */
const VALUES = new Set(['const', 'enum', 'default', 'examples'])
/** Looked up while a value is judged. */
const DYNAMIC = new Set(['$dynamicRef', '$dynamicAnchor'])

/** A copy in which a path, as in `#/$defs/constructor`, finds what was written and nothing else. */
export function withoutHeirs(schema: JsonSchema | boolean): JsonSchema | boolean {
  return copyOf(schema) as JsonSchema | boolean
}

function copyOf(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(copyOf)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.create(null) as Record<string, unknown>
  for (const [key, value] of Object.entries(node)) {
    if (DYNAMIC.has(key) && typeof value === 'string' && isInherited(value.replace(/^#/, '')))
      throw new Error(`can't resolve ${key} ${value}: the name is taken, choose another`)
    copy[key] = VALUES.has(key) ? value : copyOf(value)
  }
  return copy
}

const isInherited = (name: string) => name in Object.prototype
