import type { Value } from './ast.ts'

export function made(value: Value): unknown {
  switch (value.is) {
    case 'json':
      return value.json
    case 'date':
      return new Date(value.ms)
    case 'map':
      return new Map(value.entries)
    case 'bigint':
      return BigInt(value.digits)
    default:
      return Uint8Array.from(value.list)
  }
}

/** A value as JSON can carry it, which tells its type. */
export function described(value: unknown): unknown {
  if (value instanceof Date) return `date ${value.getTime()}`
  if (value instanceof Map) return `map ${JSON.stringify([...value])}`
  if (value instanceof Uint8Array) return `bytes ${[...value].join(' ')}`
  if (typeof value === 'bigint') return `bigint ${value}`
  return value
}
