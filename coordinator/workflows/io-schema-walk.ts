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

const CANNOT_COME_IN = 'JSON cannot bring in: use the type that its `toJSON` returns'

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
export function schemaOf(root: ts.Type, walk: Walk): JsonSchema {
  return new SchemaWalk(walk).of(root)
}

class SchemaWalk {
  readonly #program: ts.Program
  readonly #checker: ts.TypeChecker
  readonly #direction: Direction
  readonly #warn: Walk['warn']
  readonly #unresolved: Walk['unresolved']
  readonly #definitions = createDefinitions()
  #nodes = 0
  #saidTooLarge = false

  constructor({ program, direction, warn, unresolved }: Walk) {
    this.#program = program
    this.#checker = program.getTypeChecker()
    this.#direction = direction
    this.#warn = warn
    this.#unresolved = unresolved
  }

  of(root: ts.Type): JsonSchema {
    // A `run` that never returns has no output to check.
    if (root.flags & F.Never) return {}
    return this.#definitions.finish(this.#walk(root, { path: [], inProperty: false }))
  }

  #walk(type: ts.Type, where: Where): JsonSchema {
    if (where.path.length > MAX_DEPTH || ++this.#nodes > MAX_NODES) return this.#anything(where)
    return this.#primitive(type, where) ?? this.#compound(type, where)
  }

  #anything(where: Where): JsonSchema {
    const start = this.#textOf({ ...where, path: where.path.slice(0, 5) })
    if (!this.#saidTooLarge)
      this.#warn(`the type at \`${start}\` is too deep or too large to describe: its far parts are not checked`)
    this.#saidTooLarge = true
    return {}
  }

  #primitive(type: ts.Type, where: Where): JsonSchema | undefined {
    const { flags } = type
    if (flags & (F.Any | F.Unknown)) return unchecked(type, () => this.#unresolved?.(this.#textOf(where)))
    if (flags & (F.Null | F.Undefined | F.Void)) return { type: 'null' }
    if (type.isStringLiteral() || type.isNumberLiteral()) return { const: type.value }
    if (flags & F.BooleanLiteral) return { const: this.#checker.typeToString(type) === 'true' }
    if (flags & (F.String | F.TemplateLiteral | F.StringMapping)) return { type: 'string' }
    if (flags & F.Number) return { type: 'number' }
    if (flags & F.Boolean) return { type: 'boolean' }
    if (flags & F.Never) return { not: {} }
    if (flags & (F.BigIntLike | F.ESSymbolLike))
      this.#refuse(where, `is a ${this.#checker.typeToString(type)}, which has no JSON form: use a string instead`)
    if (flags & F.Enum) return { type: 'number' }
    return flags & F.NonPrimitive ? { type: ['object', 'array'] } : undefined
  }

  #compound(type: ts.Type, where: Where): JsonSchema {
    if (type.flags & F.Instantiable) return this.#constraintOf(type, where)
    if (type.isUnion()) return this.#union(type, where)
    const carrier = type.isIntersection() ? type.types.find((part) => this.#carriesData(part)) : undefined
    if (carrier) return this.#withAliasDocs(this.#walk(carrier, where), type, where)
    if (this.#checker.isTupleType(type)) return this.#tuple(type as ts.TupleTypeReference, where)
    if (this.#checker.isArrayType(type))
      return this.#array(this.#checker.getTypeArguments(type as ts.TypeReference)[0], where)
    return this.#builtin(type, where) ?? this.#viaToJson(type, where) ?? this.#object(type, where)
  }

  /** `string & { brand }` is a string to everybody but the type checker. */
  #carriesData(type: ts.Type): boolean {
    const plain = F.StringLike | F.NumberLike | F.BooleanLike | F.BigIntLike
    return (
      !!(type.flags & plain) ||
      this.#checker.isArrayType(type) ||
      this.#checker.isTupleType(type) ||
      !!builtinOf(type, this.#program)
    )
  }

  /** A type parameter that nobody filled in is as wide as its constraint. */
  #constraintOf(type: ts.Type, where: Where): JsonSchema {
    const constraint = this.#checker.getBaseConstraintOfType(type)
    return constraint && constraint !== type ? this.#walk(constraint, where) : {}
  }

  #union(type: ts.UnionType, where: Where): JsonSchema {
    const present = type.types.filter((part) => !isAbsent(part))
    const parts = present.map((part) => this.#walk(part, where))
    // JSON leaves an undefined property out and writes null everywhere else.
    if (!where.inProperty && present.length < type.types.length) parts.push({ type: 'null' })
    return unionOf(parts)
  }

  #array(element: ts.Type | undefined, where: Where): JsonSchema {
    return { type: 'array', items: element ? this.#walk(element, inside(where, 0)) : {} }
  }

  #tuple(type: ts.TupleTypeReference, where: Where): JsonSchema {
    const { elementFlags, minLength } = type.target
    const elements = this.#checker.getTypeArguments(type)
    const firstRest = elementFlags.findIndex((flag) => flag & ts.ElementFlags.Variable)
    const fixed = firstRest === -1 ? elements : elements.slice(0, firstRest)
    const rest = firstRest === -1 ? [] : elements.slice(firstRest)
    const prefixItems = fixed.map((element, index) => this.#walk(element, inside(where, index)))
    const items =
      rest.length > 0 ? unionOf(rest.map((element) => this.#walk(element, inside(where, firstRest)))) : false
    return { type: 'array', ...(prefixItems.length > 0 ? { prefixItems } : {}), items, minItems: minLength }
  }

  #builtin(type: ts.Type, where: Where): JsonSchema | undefined {
    const known = builtinOf(type, this.#program)
    if (!known) return undefined
    if (known.kind === 'boxed') return { type: known.type }
    if (known.kind === 'refused')
      this.#refuse(where, `is a ${known.name}, which has no faithful JSON form: use ${known.instead}`)
    if (this.#direction === 'input')
      this.#warn(`\`${this.#textOf(where)}\` is a Date in the types, but arrives as the string that JSON makes of it`)
    return { type: 'string', format: 'date-time' }
  }

  #viaToJson(type: ts.Type, where: Where): JsonSchema | undefined {
    const method = type.getProperty('toJSON')
    const signature = method && this.#checker.getTypeOfSymbol(method).getCallSignatures()[0]
    if (!signature) return undefined
    if (this.#direction === 'input')
      this.#refuse(where, `is a ${this.#checker.typeToString(type)}, which ${CANNOT_COME_IN}`)
    return this.#walk(this.#checker.getReturnTypeOfSignature(signature), where)
  }

  #object(type: ts.Type, where: Where): JsonSchema {
    if (type.getCallSignatures().length > 0 || type.getConstructSignatures().length > 0) {
      this.#refuse(where, 'is a function, which has no JSON form: pass data instead')
    }
    return this.#definitions.refer(type, baseNameOf(type, where), () =>
      this.#withAliasDocs(this.#members(type, where), type, where),
    )
  }

  #members(type: ts.Type, where: Where): JsonSchema {
    const properties: Record<string, JsonSchema> = {}
    const required: string[] = []
    for (const property of this.#checker.getPropertiesOfType(type)) {
      if (!this.#isOwnData(property)) continue
      const propertyType = this.#checker.getTypeOfSymbol(property)
      if (isAbsent(propertyType)) continue
      const at: Where = { path: [...where.path, property.name], inProperty: true }
      properties[property.name] = withDocs(this.#walk(propertyType, at), property, this.#docsAt(at))
      if (!mayBeAbsent(property, propertyType)) required.push(property.name)
    }
    const open = this.#indexed(type, where)
    // `{}` and an empty interface stand for anything at all.
    if (Object.keys(properties).length === 0 && !open) return {}
    return {
      type: 'object',
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(required.length > 0 ? { required } : {}),
      ...(open ? { additionalProperties: open } : {}),
    }
  }

  #indexed(type: ts.Type, where: Where): JsonSchema | undefined {
    const index = this.#checker.getIndexInfosOfType(type).filter(({ keyType }) => keyType.flags & (F.String | F.Number))
    if (index.length === 0) return undefined
    return unionOf(index.map((each) => this.#walk(each.type, { path: [...where.path, '*'], inProperty: true })))
  }

  /** Whether JSON carries the property: symbols, `#private` names and what lives on a prototype are not carried. */
  #isOwnData(property: ts.Symbol): boolean {
    if (
      property.escapedName.toString().startsWith('__@') ||
      property.name.startsWith('#') ||
      property.name === '__proto__'
    )
      return false
    if (property.flags & ts.SymbolFlags.Method)
      return this.#direction === 'input' && !(property.flags & ts.SymbolFlags.Optional)
    const declaration = property.declarations?.[0]
    return !(declaration && ts.isAccessor(declaration) && ts.isClassLike(declaration.parent))
  }

  #withAliasDocs(schema: JsonSchema, type: ts.Type, where: Where): JsonSchema {
    const named = type.aliasSymbol ?? (isAnonymous(type) ? undefined : type.symbol)
    return named && this.#isCustomers(named) ? withDocs(schema, named, this.#docsAt(where)) : schema
  }

  /** `Record` and its like are documented too, but say nothing of the customer's data. */
  #isCustomers(symbol: ts.Symbol): boolean {
    return !symbol.declarations?.some((declaration) =>
      this.#program.isSourceFileDefaultLibrary(declaration.getSourceFile()),
    )
  }

  #docsAt(where: Where) {
    return { at: this.#textOf(where), checker: this.#checker, warn: this.#warn }
  }

  #textOf(where: Where): string {
    return fieldPath([this.#direction, ...where.path])
      .replaceAll('["*"]', '[*]')
      .replaceAll('[0]', '[]')
  }

  #refuse(where: Where, reason: string): never {
    throw new NotJson(this.#textOf(where), reason)
  }
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
