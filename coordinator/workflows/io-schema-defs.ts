import type ts from './typescript-api.cjs'
import { type JsonSchema, mapSubschemas } from './json-schema.ts'

type Definition = { baseName: string; schema: JsonSchema; uses: number }

/**
 * Object types met on the way. Each is written once and referred to, which ends recursion and keeps a schema from
 * growing exponentially; what turns out to be used once only is put back in its place.
 */
export type Definitions = ReturnType<typeof createDefinitions>

export function createDefinitions() {
  const byType = new Map<ts.Type, string>()
  const byMark = new Map<string, Definition>()

  /** A reference to the type's schema, which is written at the first use. */
  function refer(type: ts.Type, baseName: string, write: () => JsonSchema): JsonSchema {
    let mark = byType.get(type)
    if (mark === undefined) {
      mark = `#${byMark.size}`
      byType.set(type, mark)
      // Stands there while it is being written, for references from inside.
      const definition: Definition = { baseName, schema: {}, uses: 0 }
      byMark.set(mark, definition)
      definition.schema = write()
    }
    const definition = byMark.get(mark)
    if (definition) definition.uses++
    return { $ref: mark }
  }

  /** The finished schema with its `$defs`. */
  function finish(schema: JsonSchema): JsonSchema {
    const names = new Map<string, string>()
    const defs: Record<string, JsonSchema> = {}

    function withRefs(node: JsonSchema): JsonSchema {
      const { $ref: mark, ...siblings } = node
      const definition = typeof mark === 'string' ? byMark.get(mark) : undefined
      if (typeof mark !== 'string' || !definition) return mapSubschemas(node, withRefs)
      // What is said at the place of use wins over what is said at the type.
      if (definition.uses === 1) return { ...mapSubschemas(definition.schema, withRefs), ...siblings }
      return { $ref: `#/$defs/${nameOf(mark, definition)}`, ...siblings }
    }

    function nameOf(mark: string, definition: Definition): string {
      const known = names.get(mark)
      if (known !== undefined) return known
      const name = freeName(definition.baseName, defs)
      names.set(mark, name)
      // Reserved before its inside is placed, as that may refer to it.
      defs[name] = {}
      defs[name] = mapSubschemas(definition.schema, withRefs)
      return name
    }

    const placed = withRefs(schema)
    return Object.keys(defs).length > 0 ? { ...placed, $defs: defs } : placed
  }

  return { refer, finish }
}

function freeName(wanted: string, taken: object): string {
  // `defs.__proto__ = …` names no definition, and who resolves references may not look for one there.
  const base = wanted.replace(/\W/g, '').replace(/^__proto__$/, '') || 'Type'
  let name = base
  for (let n = 2; Object.hasOwn(taken, name); n++) name = `${base}${n}`
  return name
}
