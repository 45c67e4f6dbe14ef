import { z } from 'zod'

/** By which a request is known when it comes again. Also a header, see coordinator/idempotency/key.ts. */
export const IdempotencyKey = z.string().min(1).max(255).optional()
