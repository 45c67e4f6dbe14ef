import { Fault } from '@windlass/shared/errors.ts'
import type { z } from 'zod'
import { definitions } from './issues.ts'

/** Values in one field: more than any row takes, and few enough to be held against a schema one by one. */
const MOST_VALUES = 10_000
/** Fields of a request; no row knows a tenth of them. */
const MOST_FIELDS = 1000

/**
 * Refuses a field with so many values that looking at each, and at what is wrong with each, would keep everybody else
 * waiting. What is any JSON value by its schema is not looked at, and may have as many as it likes.
 */
export function refuseCrowds(schema: z.ZodType, fields: unknown): void {
  if (typeof fields !== 'object' || fields === null) return
  const entries = Object.entries(fields)
  if (entries.length > MOST_FIELDS)
    throw crowded('', `${entries.length} fields are given; no request has more than a few of them`)
  const free = freeFields(schema)
  for (const [name, value] of entries) {
    if (!free.has(name) && countUpTo(value, MOST_VALUES) > MOST_VALUES)
      throw crowded(name, `\`${name}\` holds more than ${MOST_VALUES} values; give fewer`)
  }
}

const freeOf = new WeakMap<z.ZodType, ReadonlySet<string>>()

/** The fields that take any JSON value. */
function freeFields(schema: z.ZodType): ReadonlySet<string> {
  const known = freeOf.get(schema)
  if (known) return known
  const [{ shape = {} } = {}] = definitions(schema)
  const names = Object.keys(shape).filter((name) => definitions(shape[name]!).some(({ type }) => type === 'unknown'))
  const free = new Set(names)
  freeOf.set(schema, free)
  return free
}

/** Counts the values within a value, itself included; stops soon after `most`. */
function countUpTo(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 1
  for (const inner of Object.values(value)) {
    count += countUpTo(inner, most - count)
    if (count > most) break
  }
  return count
}

function crowded(path: string, message: string): Fault {
  return new Fault('VALIDATION_FAILED', { path }, message)
}
