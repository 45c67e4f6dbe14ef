import type { JsonSchema } from './json-schema.ts'

/** One schema that accepts what any of the parts accepts, written as shortly as JSON Schema allows. */
export function unionOf(parts: JsonSchema[]): JsonSchema {
  const distinct = withWholeBoolean([...new Map(parts.map((part) => [JSON.stringify(part), part])).values()])
  if (distinct.some((part) => Object.keys(part).length === 0)) return {}
  const values = distinct.filter(isConst).map((part) => part['const'])
  const simple = nullLast(distinct.filter((part) => isBareType(part)).map((part) => part['type']))
  const rest = distinct.filter((part) => !isConst(part) && !isBareType(part))
  const merged = [...rest, ...mergeTypes(simple, values)]
  return merged.length === 1 ? (merged[0] ?? {}) : { anyOf: merged }
}

/** `'a' | 'b' | null` is one enumeration; a type beside constants stays a branch of its own. */
function mergeTypes(types: unknown[], values: unknown[]): JsonSchema[] {
  if (values.length > 0 && types.every((type) => type === 'null'))
    return [constants([...values, ...types.map(() => null)])]
  const branches: JsonSchema[] = []
  if (values.length > 0) branches.push(constants(values))
  if (types.length > 0) branches.push({ type: types.length === 1 ? types[0] : types })
  return branches
}

function nullLast(types: unknown[]): unknown[] {
  return [...types.filter((type) => type !== 'null'), ...types.filter((type) => type === 'null')]
}

function constants(values: unknown[]): JsonSchema {
  return values.length === 1 ? { const: values[0] } : { enum: values }
}

/** TypeScript hands out `boolean` in a union as its two values. */
function withWholeBoolean(parts: JsonSchema[]): JsonSchema[] {
  const both = [true, false].every((value) => parts.some((part) => isConst(part) && part['const'] === value))
  if (!both) return parts
  return [...parts.filter((part) => !(isConst(part) && typeof part['const'] === 'boolean')), { type: 'boolean' }]
}

function isConst(part: JsonSchema): boolean {
  return Object.hasOwn(part, 'const') && Object.keys(part).length === 1
}

function isBareType(part: JsonSchema): boolean {
  return typeof part['type'] === 'string' && Object.keys(part).length === 1
}
