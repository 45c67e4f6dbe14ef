import type { ErrorObject } from 'ajv'
import { fieldPath } from '@windlass/shared/field-path.ts'

/** What does not fit, where, and what would. */
export type Invalid = { path: string; message: string }

/** Of all that a validator says, the one thing that helps most. */
export function worst(errors: readonly ErrorObject[], value: unknown, root: string): Invalid {
  const error = mostTelling(errors)
  if (!error) return { path: root, message: 'does not fit its schema' }
  const segments = segmentsOf(error.instancePath, value)
  if (error.keyword === 'required') segments.push(String(error.params['missingProperty']))
  return {
    path: fieldPath(root === '' ? segments : [root, ...segments]),
    message: messageOf(error, dataOf(error, value)),
  }
}

/** Returns the value that an error is about. Noted by the validator, such values would all be held in memory. */
function dataOf({ instancePath, propertyName }: ErrorObject, value: unknown): unknown {
  if (propertyName !== undefined) return propertyName
  let at = value
  for (const key of keysOf(instancePath)) at = (at as Record<string, unknown> | null | undefined)?.[key]
  return at
}

function keysOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/**
 * A union reports every branch that failed. The branch that the value was meant for is the one that got furthest:
 * its complaint lies deepest and is not about the constant that tells the branches apart.
 */
function mostTelling(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const union = errors.find(({ keyword, schemaPath }) => keyword === 'anyOf' && isOutermost(schemaPath, errors))
  if (!union) return errors[0]
  const depth = depthOf(union)
  const branches = Map.groupBy(
    errors.filter((error) => error !== union),
    ({ schemaPath }) => branchOf(schemaPath, union.schemaPath),
  )
  const close = [...branches.values()].filter((branch) => branch.every((error) => !isOtherKind(error, depth)))
  if (close.length !== 1) return deepest(close.flat(), depth) ?? union
  return mostTelling(close[0] ?? []) ?? union
}

/** The branch is for another kind of value: its outer type or its telling constant differs. */
function isOtherKind(error: ErrorObject, unionDepth: number): boolean {
  const depth = depthOf(error) - unionDepth
  if (depth === 0) return ['type', 'enum', 'const'].includes(error.keyword)
  return depth === 1 && error.keyword === 'const'
}

function deepest(errors: ErrorObject[], unionDepth: number): ErrorObject | undefined {
  return errors.filter((error) => depthOf(error) > unionDepth).sort((a, b) => depthOf(b) - depthOf(a))[0]
}

function isOutermost(schemaPath: string, errors: readonly ErrorObject[]): boolean {
  return !errors.some((other) => other.keyword === 'anyOf' && other.schemaPath.length < schemaPath.length)
}

/** `#/properties/a/anyOf/1/type` within `#/properties/a/anyOf` is branch 1; a `$ref` starts a path of its own. */
function branchOf(schemaPath: string, union: string): string {
  return schemaPath.startsWith(union)
    ? (schemaPath.slice(union.length + 1).split('/')[0] ?? '')
    : (schemaPath.split('/')[2] ?? schemaPath)
}

function depthOf({ instancePath }: ErrorObject): number {
  return instancePath.split('/').length
}

/** `/packages/3/name` as names and, where the value has a list there, positions. */
function segmentsOf(pointer: string, value: unknown): (string | number)[] {
  let at: unknown = value
  return keysOf(pointer).map((key) => {
    const inList = Array.isArray(at)
    at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[key] : undefined
    return inList ? Number(key) : key
  })
}

function messageOf({ keyword, params, message }: ErrorObject, data: unknown): string {
  if (keyword === 'required') return 'is required'
  if (keyword === 'type') return `must be ${typeNames(params['type'])}, but is ${kindOf(data)}`
  if (keyword === 'const') return `must be ${JSON.stringify(params['allowedValue'])}, but is ${shown(data)}`
  if (keyword === 'enum') return `must be one of ${listed(params['allowedValues'] as unknown[])}, but is ${shown(data)}`
  if (keyword === 'format') return `must be a ${String(params['format'])}, but is ${shown(data)}`
  if (keyword === 'anyOf') return 'fits none of the shapes that its type allows'
  if (keyword === 'not' || keyword === 'false schema') return 'must not be there'
  const what = message ?? 'does not fit its schema'
  return typeof data === 'object' && data !== null ? what : `${what}, but is ${shown(data)}`
}

const listed = (values: unknown[]) => values.map((value) => JSON.stringify(value)).join(', ')

function typeNames(type: unknown): string {
  return [type]
    .flat()
    .map((name) => article(String(name)))
    .join(' or ')
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return article(Array.isArray(value) ? 'array' : typeof value)
}

function article(type: string): string {
  if (type === 'null') return 'null'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

/** Short enough for one line of a terminal. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 60 ? `${text.slice(0, 57)}…` : text
}
