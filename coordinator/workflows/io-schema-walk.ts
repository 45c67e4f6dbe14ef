import ts from './typescript-api.cjs'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { builtinOf } from './io-schema-builtins.ts'
import { createDefinitions } from './io-schema-defs.ts'
import { NotJson } from './io-schema-fault.ts'
import { withDocs } from './io-schema-jsdoc.ts'
import { unionOf } from './io-schema-union.ts'
import type { JsonSchema } from './json-schema.ts'

const F = ts.TypeFlags
// A type may unfold for ever (`Box<Box<…>>`); real data stays far below both.
const MAX_DEPTH = 30
const MAX_NODES = 50_000

export type Direction = 'input' | 'output'
type Where = { path: PropertyKey[]; inProperty: boolean }
type Walk = {
  program: ts.Program
  direction: Direction
  warn: (message: string) => void
  /** Told of each place whose type comes from a module that the checker does not know. */
  unresolved?: (at: string) => void
}

/** JSON Schema of a type: of what JSON.parse gives for `input`, of what JSON.stringify writes for `output`. */
export function schemaOf(root: ts.Type, { program, direction, warn, unresolved }: Walk): JsonSchema {
  const checker = program.getTypeChecker()
  const definitions = createDefinitions()
  let nodes = 0
  let saidTooLarge = false

  function walk(type: ts.Type, where: Where): JsonSchema {
    if (where.path.length > MAX_DEPTH || ++nodes > MAX_NODES) return anything(where)
    return primitive(type, where) ?? compound(type, where)
  }

  function anything(where: Where): JsonSchema {
    const start = textOf({ ...where, path: where.path.slice(0, 5) })
    if (!saidTooLarge)
      warn(`the type at \`${start}\` is too deep or too large to describe: its far parts are not checked`)
    saidTooLarge = true
    return {}
  }

  function primitive(type: ts.Type, where: Where): JsonSchema | undefined {
    const { flags } = type
    if (flags & (F.Any | F.Unknown)) return unchecked(type, () => unresolved?.(textOf(where)))
    if (flags & (F.Null | F.Undefined | F.Void)) return { type: 'null' }
    if (type.isStringLiteral() || type.isNumberLiteral()) return { const: type.value }
    if (flags & F.BooleanLiteral) return { const: checker.typeToString(type) === 'true' }
    if (flags & (F.String | F.TemplateLiteral | F.StringMapping)) return { type: 'string' }
    if (flags & F.Number) return { type: 'number' }
    if (flags & F.Boolean) return { type: 'boolean' }
    if (flags & F.Never) return { not: {} }
    if (flags & (F.BigIntLike | F.ESSymbolLike))
      refuse(where, `is a ${checker.typeToString(type)}, which has no JSON form: use a string instead`)
    if (flags & F.Enum) return { type: 'number' }
    return flags & F.NonPrimitive ? { type: ['object', 'array'] } : undefined
  }

  function compound(type: ts.Type, where: Where): JsonSchema {
    if (type.flags & F.Instantiable) return constraintOf(type, where)
    if (type.isUnion()) return union(type, where)
    const carrier = type.isIntersection() ? type.types.find(carriesData) : undefined
    if (carrier) return withAliasDocs(walk(carrier, where), type, where)
    if (checker.isTupleType(type)) return tuple(type as ts.TupleTypeReference, where)
    if (checker.isArrayType(type)) return array(checker.getTypeArguments(type as ts.TypeReference)[0], where)
    return builtin(type, where) ?? viaToJson(type, where) ?? object(type, where)
  }

  /** `string & { brand }` is a string to everybody but the type checker. */
  function carriesData(type: ts.Type): boolean {
    const plain = F.StringLike | F.NumberLike | F.BooleanLike | F.BigIntLike
    return (
      !!(type.flags & plain) || checker.isArrayType(type) || checker.isTupleType(type) || !!builtinOf(type, program)
    )
  }

  /** A type parameter that nobody filled in is as wide as its constraint. */
  function constraintOf(type: ts.Type, where: Where): JsonSchema {
    const constraint = checker.getBaseConstraintOfType(type)
    return constraint && constraint !== type ? walk(constraint, where) : {}
  }

  function union(type: ts.UnionType, where: Where): JsonSchema {
    const present = type.types.filter((part) => !isAbsent(part))
    const parts = present.map((part) => walk(part, where))
    // JSON leaves an undefined property out and writes null everywhere else.
    if (!where.inProperty && present.length < type.types.length) parts.push({ type: 'null' })
    return unionOf(parts)
  }

  function array(element: ts.Type | undefined, where: Where): JsonSchema {
    return { type: 'array', items: element ? walk(element, inside(where, 0)) : {} }
  }

  function tuple(type: ts.TupleTypeReference, where: Where): JsonSchema {
    const { elementFlags, minLength } = type.target
    const elements = checker.getTypeArguments(type)
    const firstRest = elementFlags.findIndex((flag) => flag & ts.ElementFlags.Variable)
    const fixed = firstRest === -1 ? elements : elements.slice(0, firstRest)
    const rest = firstRest === -1 ? [] : elements.slice(firstRest)
    const prefixItems = fixed.map((element, index) => walk(element, inside(where, index)))
    const items = rest.length > 0 ? unionOf(rest.map((element) => walk(element, inside(where, firstRest)))) : false
    return { type: 'array', ...(prefixItems.length > 0 ? { prefixItems } : {}), items, minItems: minLength }
  }

  function builtin(type: ts.Type, where: Where): JsonSchema | undefined {
    const known = builtinOf(type, program)
    if (!known) return undefined
    if (known.kind === 'boxed') return { type: known.type }
    if (known.kind === 'refused')
      refuse(where, `is a ${known.name}, which has no faithful JSON form: use ${known.instead}`)
    if (direction === 'input')
      warn(`\`${textOf(where)}\` is a Date in the types, but arrives as the string that JSON makes of it`)
    return { type: 'string', format: 'date-time' }
  }

  function viaToJson(type: ts.Type, where: Where): JsonSchema | undefined {
    const method = type.getProperty('toJSON')
    const signature = method && checker.getTypeOfSymbol(method).getCallSignatures()[0]
    if (!signature) return undefined
    if (direction === 'input')
      refuse(
        where,
        `is a ${checker.typeToString(type)}, which JSON cannot bring in: use the type that its \`toJSON\` returns`,
      )
    return walk(checker.getReturnTypeOfSignature(signature), where)
  }

  function object(type: ts.Type, where: Where): JsonSchema {
    if (type.getCallSignatures().length > 0 || type.getConstructSignatures().length > 0) {
      refuse(where, 'is a function, which has no JSON form: pass data instead')
    }
    return definitions.refer(type, baseNameOf(type, where), () => withAliasDocs(members(type, where), type, where))
  }

  function members(type: ts.Type, where: Where): JsonSchema {
    const properties: Record<string, JsonSchema> = {}
    const required: string[] = []
    for (const property of checker.getPropertiesOfType(type)) {
      if (!isOwnData(property)) continue
      const propertyType = checker.getTypeOfSymbol(property)
      if (isAbsent(propertyType)) continue
      const at: Where = { path: [...where.path, property.name], inProperty: true }
      properties[property.name] = withDocs(walk(propertyType, at), property, docsAt(at))
      if (!mayBeAbsent(property, propertyType)) required.push(property.name)
    }
    const open = indexed(type, where)
    // `{}` and an empty interface stand for anything at all.
    if (Object.keys(properties).length === 0 && !open) return {}
    return {
      type: 'object',
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(required.length > 0 ? { required } : {}),
      ...(open ? { additionalProperties: open } : {}),
    }
  }

  function indexed(type: ts.Type, where: Where): JsonSchema | undefined {
    const index = checker.getIndexInfosOfType(type).filter(({ keyType }) => keyType.flags & (F.String | F.Number))
    if (index.length === 0) return undefined
    return unionOf(index.map((each) => walk(each.type, { path: [...where.path, '*'], inProperty: true })))
  }

  /** Whether JSON carries the property: symbols, `#private` names and what lives on a prototype are not carried. */
  function isOwnData(property: ts.Symbol): boolean {
    if (
      property.escapedName.toString().startsWith('__@') ||
      property.name.startsWith('#') ||
      property.name === '__proto__'
    )
      return false
    if (property.flags & ts.SymbolFlags.Method)
      return direction === 'input' && !(property.flags & ts.SymbolFlags.Optional)
    const declaration = property.declarations?.[0]
    return !(declaration && ts.isAccessor(declaration) && ts.isClassLike(declaration.parent))
  }

  function withAliasDocs(schema: JsonSchema, type: ts.Type, where: Where): JsonSchema {
    const named = type.aliasSymbol ?? (isAnonymous(type) ? undefined : type.symbol)
    return named && isCustomers(named) ? withDocs(schema, named, docsAt(where)) : schema
  }

  /** `Record` and its like are documented too, but say nothing of the customer's data. */
  function isCustomers(symbol: ts.Symbol): boolean {
    return !symbol.declarations?.some((declaration) => program.isSourceFileDefaultLibrary(declaration.getSourceFile()))
  }

  function docsAt(where: Where) {
    return { at: textOf(where), checker, warn }
  }

  function textOf(where: Where): string {
    return fieldPath([direction, ...where.path])
      .replaceAll('["*"]', '[*]')
      .replaceAll('[0]', '[]')
  }

  function refuse(where: Where, reason: string): never {
    throw new NotJson(textOf(where), reason)
  }

  // A `run` that never returns has no output to check.
  if (root.flags & F.Never) return {}
  return definitions.finish(walk(root, { path: [], inProperty: false }))
}

function inside(where: Where, index: number): Where {
  return { path: [...where.path, index], inProperty: false }
}

/** `tell` is called for the `any` that the checker makes of what it cannot resolve, not for one that was written. */
function unchecked(type: ts.Type, tell: () => void): JsonSchema {
  const name: unknown = Reflect.get(type, 'intrinsicName')
  if (name === 'error' || name === 'unresolved') tell()
  return {}
}

function isAbsent(type: ts.Type): boolean {
  return !!(type.flags & (F.Undefined | F.Void))
}

function mayBeAbsent(property: ts.Symbol, type: ts.Type): boolean {
  if (property.flags & ts.SymbolFlags.Optional || type.flags & (F.Any | F.Unknown)) return true
  return type.isUnion() && type.types.some(isAbsent)
}

function isAnonymous(type: ts.Type): boolean {
  return !type.symbol || type.symbol.escapedName.toString().startsWith('__')
}

/** The name of a type, else the field it stands in: `packages` → `Packages`. */
function baseNameOf(type: ts.Type, where: Where): string {
  const named = type.aliasSymbol ?? (isAnonymous(type) ? undefined : type.symbol)
  if (named) return named.name
  const field = where.path.findLast((segment) => typeof segment === 'string' && /^\w+$/.test(segment))
  return typeof field === 'string' ? field.charAt(0).toUpperCase() + field.slice(1) : 'Type'
}
