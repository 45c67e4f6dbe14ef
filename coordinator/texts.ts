import { fieldPath } from '@windlass/shared/field-path.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { z } from 'zod'

/**
 * UTF-8 has no half of a surrogate pair: another character would be stored in its place. JSON of no given form keeps it
 * as an escape.
 */
export function refuseHalves(schema: z.ZodObject, input: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(input)) {
    if (isAnything(schema.shape[name])) continue
    const path = pathOfText(value, (text) => !text.isWellFormed(), [name])
    if (path !== undefined)
      throw new Fault('VALIDATION_FAILED', { path }, `\`${path}\` holds half of a surrogate pair; leave it out`)
  }
}

/** PostgreSQL, which has refused it, does not say where. */
export function nulRefused(input: unknown): Fault {
  const path = pathOfText(input, (text) => text.includes('\0'), []) ?? ''
  const what = path === '' ? 'The request' : `\`${path}\``
  const message = `${what} holds the character U+0000, which cannot be stored; leave it out.`
  return new Fault('VALIDATION_FAILED', { path }, message)
}

/** Where the first such text stands, be it a value or a name. */
function pathOfText(
  value: unknown,
  isMeant: (text: string) => boolean,
  at: readonly PropertyKey[],
): string | undefined {
  if (typeof value === 'string') return isMeant(value) ? fieldPath(at) : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    if (isMeant(key)) return fieldPath(at)
    const found = pathOfText(inner, isMeant, [...at, Array.isArray(value) ? Number(key) : key])
    if (found !== undefined) return found
  }
  return undefined
}

interface Wrapped {
  def?: { type: string; innerType?: Wrapped }
}

function isAnything(schema: unknown): boolean {
  let inner = schema as Wrapped | undefined
  while (inner?.def?.innerType) inner = inner.def.innerType
  return inner?.def?.type === 'unknown'
}
