import { z } from 'zod'

/** Some of these values, each at most once: a filter is stored and shown again, so it is no longer than it must be. */
export function eachOnce<T extends string>(values: readonly T[]) {
  return z
    .array(z.enum(values))
    .min(1)
    .max(values.length)
    .refine((given) => new Set(given).size === given.length, 'names one twice')
    .meta({ uniqueItems: true })
}
