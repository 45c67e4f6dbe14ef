import { z } from 'zod'
import { HookId } from '../ids.ts'
import { Source } from './connection.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

export const WebhookAuth = z
  .enum(['hmac', 'bearer'])
  .meta({ description: 'A signature over the body, or the secret itself in a header.' })
export type WebhookAuth = z.output<typeof WebhookAuth>

/** Where other systems start a workflow. */
export const Webhook = z
  .object({
    id: HookId,
    url: z.string().meta({ description: 'Where to post.' }),
    urlNote: z.string().nullable().meta({ description: 'What is doubtful about `url`; null: nothing.' }),
    auth: WebhookAuth,
    header: z.string().meta({ description: 'The header that carries the one or the other.' }),
    environment: z.string().nullable(),
    input: z.enum(['body', 'request']).meta({ description: 'Whether runs get the body, or all of the request.' }),
    dedupe: Source.nullable(),
    createdAt: At,
    rotatedAt: At.nullable().meta({ description: 'Null: nobody has asked for its secret yet.' }),
    previousSecretUntil: At.nullable().meta({ description: 'Until then a former secret serves as well.' }),
    lastDeliveryAt: At.nullable().meta({ description: 'Of one that was verified; may be a minute old.' }),
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.output<typeof Webhook>

export const OverlapMs = z
  .int()
  .min(0)
  .max(30 * 86_400_000)
  .default(86_400_000)
  .meta({ description: 'How long the secret of before serves as well; 0 ends it and all former ones at once.' })
