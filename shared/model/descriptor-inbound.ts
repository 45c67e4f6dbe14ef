import { z } from 'zod'
import { Slug } from '../ids.ts'
import { Source } from './connection.ts'
import { strict } from './strict.ts'

// What a descriptor says of deliveries, and what it shares with the rest of it.

export const Name = z.string().trim().min(1, { error: 'must not be empty' }).max(200)
export const EnvironmentName = Slug.describe('Name of the environment whose secrets and variables a run gets.')

const Scalar = z.union([z.string().max(500), z.number(), z.boolean(), z.null()])
const OneOf = z.union([Scalar, z.array(Scalar).min(1).max(100)])
/** Deliveries of a connection that start runs. */
export const Connection = strict({
  connection: Name.describe('Name of the connection whose deliveries start runs.'),
  events: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .describe('Event types, each with all beneath it; `*` stands for any part: "pull_request", "*.created".'),
  filter: z
    .record(
      z
        .string()
        .max(500)
        .regex(/^[^.\s]+(\.[^.\s]+)*$/, { error: 'must be a path of fields with dots, such as "repository.name"' }),
      z.union([Scalar, z.array(Scalar).min(1).max(100), strict({ not: OneOf })], {
        error: 'must be a value, a list of values, or { not }',
      }),
    )
    .refine((filter) => Object.keys(filter).length <= 50, { error: 'must name at most 50 fields' })
    .default({})
    .meta({
      description:
        'Fields of the payload and the value, or list of values, that each must have; { not } must not have.',
      examples: [
        { 'repository.full_name': 'acme/*', 'labels[].name': ['bug', 'urgent'], 'sender.type': { not: 'Bot' } },
      ],
    }),
  environment: EnvironmentName.optional(),
})

/** How deliveries at the webhook of the workflow start runs. */
export const Webhook = strict({
  environment: EnvironmentName.optional(),
  input: z
    .enum(['body', 'request'])
    .default('body')
    .describe('Whether runs get the body alone, or { method, headers, query, body, receivedAt }.'),
  dedupe: Source.optional().describe('Where the id of a delivery stands by which a repetition is known.'),
})

export function resolveWebhook({ environment, input, dedupe }: z.output<typeof Webhook>) {
  return { environment: environment ?? null, input, dedupe: dedupe ?? null }
}
