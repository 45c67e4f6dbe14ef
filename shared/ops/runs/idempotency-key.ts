import { z } from 'zod'

/** By which a request is known when it comes again. Also a header, see coordinator/runs/idempotency.ts. */
export const IdempotencyKey = z.string().min(1).max(255).optional()
