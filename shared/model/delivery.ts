import { z } from 'zod'
import { ConnectionId, DeliveryId, HookId, RunId, WorkflowId } from '../ids.ts'
import { RunStatus } from './run.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

export const DELIVERY_OUTCOMES = [
  'triggered',
  'duplicate',
  'disabled',
  'invalid_input',
  'too_large',
  'filtered',
  'unmatched',
  'handshake',
  'rate_limited',
  'unverified',
] as const
export const DeliveryOutcome = z.enum(DELIVERY_OUTCOMES)
export type DeliveryOutcome = z.output<typeof DeliveryOutcome>

/** What became of it for one workflow. */
const DeliveryMatch = z.object({
  workflow: z.object({ id: WorkflowId, slug: z.string() }),
  outcome: DeliveryOutcome,
  reason: z.string().nullable(),
  runId: RunId.nullable().meta({ description: 'The run that it started; of a duplicate, the first one.' }),
})

const shape = {
  id: DeliveryId,
  source: z.object({
    kind: z.enum(['webhook', 'connection']),
    id: z.union([HookId, ConnectionId]),
    name: z.string().nullable().meta({ description: 'Slug of the workflow, or name of the connection.' }),
  }),
  receivedAt: At,
  outcome: DeliveryOutcome.meta({
    description: 'The first that applies to one of the workflows, in the order of this list.',
  }),
  reason: z.string().nullable().meta({ description: 'Why no run was started, in a sentence.' }),
  event: z.string().nullable(),
  matches: z.array(DeliveryMatch),
  replayOf: DeliveryId.nullable(),
  attempts: z.int().meta({ description: 'Which try of the provider it was, where it says so; else 1.' }),
}

/** What came in at a webhook or a connection, and what became of it. */
export const Delivery = z
  .object({
    ...shape,
    method: z.string(),
    query: z.string(),
    headers: z.record(z.string(), z.string()).meta({ description: 'Credentials are `[redacted]`.' }),
    payload: z.object({
      contentType: z.string().nullable(),
      bytes: z.int(),
      kept: z.enum(['whole', 'cut']),
      text: z.string().nullable().meta({
        description: 'Its first 16 KiB; null where it is not text. `deliveries.payload` has all bytes.',
      }),
    }),
  })
  .meta({ id: 'Delivery' })
export type Delivery = z.output<typeof Delivery>

export const DeliverySummary = z.object(shape).meta({ id: 'DeliverySummary' })
export type DeliverySummary = z.output<typeof DeliverySummary>

/** What the sender of a delivery is told. */
export const DeliveryReceipt = z.object({
  delivery: z.object({ id: DeliveryId, outcome: DeliveryOutcome, reason: z.string().nullable() }),
  runs: z.array(z.object({ id: RunId, workflow: z.string(), status: RunStatus })),
})
export type DeliveryReceipt = z.output<typeof DeliveryReceipt>
