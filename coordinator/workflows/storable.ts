import { fieldPath } from '@windlass/shared/field-path.ts'
import { DeployError } from './deploy-error.ts'

/** Refuses text that the database cannot hold, in names and values alike: U+0000, and half of a surrogate pair. */
export function refuseUnstorable(value: unknown, file: string): void {
  const at = unstorable(value, [])
  if (at === undefined) return
  const path = fieldPath(at)
  throw new DeployError(
    `${file}: \`${path}\` holds U+0000 or half of a surrogate pair, which cannot be stored: leave it out`,
    { path, file },
  )
}

function unstorable(value: unknown, path: PropertyKey[]): PropertyKey[] | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const step = Array.isArray(value) ? Number(key) : key
    if (!isStorable(key)) return path
    const found = unstorable(inner, [...path, step])
    if (found) return found
  }
  return undefined
}

const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()
