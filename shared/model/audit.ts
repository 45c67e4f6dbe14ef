import { z } from 'zod'
import { AuditId, Slug } from '../ids.ts'

/** By which interface a change came in. */
export const VIAS = ['rest', 'mcp', 'runner', 'admin', 'system'] as const
export type Via = (typeof VIAS)[number]

const Facts = z.record(z.string(), z.unknown()).nullable()

/** One change, for good. Values of secrets and keys are in no entry. */
export const AuditEntry = z
  .object({
    id: AuditId,
    org: Slug,
    createdAt: z.int().meta({ description: 'Milliseconds since the Unix epoch.' }),
    actor: z.object({
      kind: z.enum(['key', 'session', 'token', 'operator', 'system']),
      id: z.string().meta({ description: 'Of the credential, or the operator by the name of the system.' }),
      name: z.string(),
    }),
    via: z.enum(VIAS),
    requestId: z.string().nullable(),
    action: z.string().meta({ description: 'The operation, as in `keys.revoke`.' }),
    target: z.object({ type: z.string(), id: z.string(), name: z.string().nullable() }),
    before: Facts.meta({ description: 'What it was; null when it was not there.' }),
    after: Facts.meta({ description: 'What it is now; null when it is gone.' }),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntry = z.output<typeof AuditEntry>
