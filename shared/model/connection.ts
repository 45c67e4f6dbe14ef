import { z } from 'zod'
import { ConnectionId, Slug } from '../ids.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** By which scheme a provider proves that a delivery is its own. */
const CONNECTION_KINDS = ['github', 'stripe', 'slack', 'standard-webhooks', 'hmac', 'bearer'] as const
export const ConnectionKind = z
  .enum(CONNECTION_KINDS)
  .meta({ description: 'Whose scheme of signatures it is; `hmac` and `bearer` for all others.' })
export type ConnectionKind = z.output<typeof ConnectionKind>

/** A header by its name, in any case. */
const HeaderName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, 'must be the name of a header, such as X-Signature')

const Signed = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => text.split('{body}').length === 2, 'must hold `{body}` exactly once')
  .refine(
    (text) => !/\{(?!(body|timestamp|id|method|url)\})/.test(text),
    'may hold {body}, {timestamp}, {id}, {method} and {url}',
  )
  .meta({
    description: 'The text that is signed, with {body}, {timestamp}, {id}, {method} and {url} in their places.',
    examples: ['{timestamp}.{body}'],
  })

/** How a provider signs that has a scheme of its own. */
export const HmacScheme = z
  .strictObject({
    header: HeaderName.meta({ description: 'Header with the signature.', examples: ['X-Signature'] }),
    encoding: z.enum(['hex', 'base64']).meta({ description: 'How the signature is written.' }),
    prefix: z
      .string()
      .max(50)
      .default('')
      .meta({ description: 'What stands in front of it.', examples: ['sha256='] }),
    algorithm: z.enum(['sha256', 'sha1', 'sha512']).default('sha256').meta({ description: 'Hash of the HMAC.' }),
    signed: Signed.default('{body}'),
    timestampHeader: HeaderName.optional().meta({
      description: 'Header with the time of signing: seconds, milliseconds or ISO 8601.',
    }),
    idHeader: HeaderName.optional().meta({ description: 'Header with the id of the delivery.' }),
    toleranceMs: z
      .int()
      .min(1000)
      .max(86_400_000)
      .default(300_000)
      .meta({ description: 'How old or how early a delivery with a time may be.' }),
  })
  .refine((s) => s.signed.includes('{timestamp}') === (s.timestampHeader !== undefined), {
    error: 'goes together with `{timestamp}` in `signed`: a time that is not signed proves nothing',
    path: ['timestampHeader'],
  })
  .refine((s) => !s.signed.includes('{id}') || s.idHeader !== undefined, {
    error: 'is needed for `{id}` in `signed`',
    path: ['idHeader'],
  })
export type HmacScheme = z.output<typeof HmacScheme>

export const BearerScheme = z.strictObject({
  header: HeaderName.default('Authorization').meta({ description: 'Header with the secret.' }),
  prefix: z.string().max(50).default('Bearer ').meta({ description: 'What stands in front of it.' }),
})
export type BearerScheme = z.output<typeof BearerScheme>

const FieldPath = z
  .string()
  .regex(/^[^.\s]{1,100}(\.[^.\s]{1,100}){0,9}$/, 'must be a path of fields with dots, such as `data.id`')
/** Where something stands in a delivery. */
export const Source = z
  .union(
    [
      z.strictObject({ header: HeaderName.meta({ description: 'Name of the header.' }) }),
      z.strictObject({ field: FieldPath.meta({ description: 'Path of the field, with dots.' }) }),
    ],
    { error: 'must be { header } or { field }' },
  )
  .meta({ description: 'A header, or a field of the payload by its path with dots.' })
export type Source = z.output<typeof Source>

/** A secret that somebody has, or that a provider gave out. */
export const GivenSecret = z
  .string()
  .min(8)
  .max(500)
  .refine((text) => /^[\x21-\x7e]+$/.test(text), 'must be printable ASCII without spaces')
  .meta({ description: 'Never shown again. Left out: one is made.' })

export const ConnectionName = z
  .string()
  .trim()
  .min(1, { error: 'must not be empty' })
  .max(100)
  .regex(/^[^\p{Cc}]*$/u, 'must not hold control characters')
  .meta({ description: 'Unique in the org. `connections` of descriptors name it.' })

/** Where another system posts what happens there. */
export const Connection = z
  .object({
    id: ConnectionId,
    org: Slug,
    name: z.string(),
    kind: ConnectionKind,
    url: z.string().meta({ description: 'Where the provider posts.' }),
    urlNote: z.string().nullable().meta({ description: 'What is doubtful about `url`; null: nothing.' }),
    enabled: z.boolean().meta({ description: 'False: deliveries are recorded and start nothing.' }),
    environment: z.string().nullable(),
    hmac: z.object({}).loose().nullable(),
    bearer: z.object({}).loose().nullable(),
    event: z.object({}).loose().nullable(),
    dedupe: z.object({}).loose().nullable(),
    hasSecret: z.boolean().meta({ description: 'False: every delivery is refused until a secret is set.' }),
    createdAt: At,
    createdBy: z.string(),
    rotatedAt: At.nullable(),
    previousSecretUntil: At.nullable().meta({ description: 'Until then a former secret serves as well.' }),
    lastDeliveryAt: At.nullable().meta({ description: 'Of one that was verified; may be a minute old.' }),
  })
  .meta({ id: 'Connection' })
export type Connection = z.output<typeof Connection>
