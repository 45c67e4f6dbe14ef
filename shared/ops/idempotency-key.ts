import { z } from 'zod'

/** By which a request is known when it comes again. Also a header, see coordinator/idempotency/key.ts. */
export const IdempotencyKey = z.string().min(1).max(255).optional()

/** The key of a request that makes something once, and within 24 hours is answered with that. */
export const keyFor = (what: 'run' | 'delivery' | 'schedule') =>
  IdempotencyKey.meta({
    description:
      'Also the header `Idempotency-Key`. ' +
      `The same key and request within 24 hours answer the first ${what} with 200.`,
  })

/** As the words of such a row have it. */
export const KEY_HEADER = {
  'Idempotency-Key': 'The same as `idempotencyKey` in the body. Given twice, both must be the same.',
}
