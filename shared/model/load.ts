import { z } from 'zod'
import { duration } from './duration.ts'
import { strict } from './strict.ts'

/** Limits in one descriptor; each costs a row while a run is under way. */
const MOST_LIMITS = 5
const DEBOUNCE_MAX_WAITS = 10

const FIELD = /^input(\.[A-Za-z_$][\w$]*)+$/

/** The part of a descriptor that says which runs belong together. */
const inputField = (description: string, example: string) =>
  z
    .string()
    .max(200)
    .regex(FIELD, { error: 'must name a field of the input, such as "input.customerId"' })
    .optional()
    .meta({ description, examples: [example] })

const ConcurrencyRule = strict({
  limit: z.int().min(1).max(100_000).describe('How many runs may be under way at once.'),
  key: inputField('Field of the input by which runs are counted apart.', 'input.customerId'),
})

const ConcurrencyRules = z
  .array(ConcurrencyRule)
  .min(1)
  .max(MOST_LIMITS)
  .refine((rules) => new Set(rules.map(({ key }) => key)).size === rules.length, {
    error: 'must not hold two limits with the same `key`, nor two without one',
  })

export const ConcurrencyFile = z.union([z.int().min(1).max(100_000), ConcurrencyRule, ConcurrencyRules], {
  error: 'must be a number of runs, { limit, key } or a list of these objects',
})

export const ThrottleFile = strict({
  limit: z.int().min(1).max(10_000).describe('How many runs may enter the queue within a time of the length `per`.'),
  per: duration({ min: '1s', max: '31d' }).meta({ description: 'That length.', examples: ['1m'] }),
  key: inputField('Field of the input by which runs are throttled apart.', 'input.customerId'),
})

export const DebounceFile = strict({
  wait: duration({ min: '1s', max: '7d' }).meta({
    description: 'How long after the last call the run enters the queue.',
    examples: ['30s'],
  }),
  maxWait: duration({ min: '1s', max: '70d' })
    .optional()
    .describe('How long after the first call it does so in any case. Default: ten times `wait`.'),
  key: inputField('Field of the input by which calls are merged apart.', 'input.documentId'),
}).refine(({ wait, maxWait }) => maxWait === undefined || maxWait >= wait, {
  error: 'must not be shorter than `wait`',
  path: ['maxWait'],
})

/** How many runs with the same value of `key` may be under way at once; of all runs where that is null. */
export interface ConcurrencyLimit {
  limit: number
  key: string | null
}

/** A single limit stays an object, as in descriptors that were deployed before there were lists. */
export function resolveConcurrency(
  given: z.output<typeof ConcurrencyFile> | undefined,
): ConcurrencyLimit | ConcurrencyLimit[] | null {
  if (given === undefined) return null
  return Array.isArray(given) ? given.map(limitOf) : limitOf(given)
}

function limitOf(given: number | z.output<typeof ConcurrencyRule>): ConcurrencyLimit {
  if (typeof given === 'number') return { limit: given, key: null }
  return { limit: given.limit, key: given.key ?? null }
}

export function resolveThrottle(given: z.output<typeof ThrottleFile> | undefined) {
  return given === undefined ? null : { limit: given.limit, perMs: given.per, key: given.key ?? null }
}

export function resolveDebounce(given: z.output<typeof DebounceFile> | undefined) {
  if (given === undefined) return null
  const { wait, maxWait, key } = given
  return { waitMs: wait, maxWaitMs: maxWait ?? DEBOUNCE_MAX_WAITS * wait, key: key ?? null }
}
