import { z } from 'zod'
import { DeliveryId, Slug, WorkflowRef } from '../../ids.ts'
import { Delivery, DeliveryOutcome, DeliverySummary } from '../../model/delivery.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { keyFor } from '../idempotency-key.ts'
import { op } from '../op.ts'
import { DELIVERIES } from './cli.ts'

export const group: Group = {
  command: 'What came in, what became of it and why.',
  docs: 'What came in at webhooks and connections, what became of it, and why.',
}

const Moment = z.int().min(0).meta({ description: 'Milliseconds since the Unix epoch; itself not counted in.' })

export const rows = {
  list: op({
    id: 'deliveries.list',
    method: 'GET',
    path: '/v1/orgs/{org}/deliveries',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    cli: {
      table: DELIVERIES,
      help: [
        '  windlass deliveries list --workflow hello',
        '  windlass deliveries list --outcome unverified --created-after 2h',
      ],
    },
    summary: 'List what came in at webhooks and connections, newest first.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef.optional(),
      connection: z.string().min(1).max(200).optional().meta({ description: 'Name or id of a connection.' }),
      outcome: DeliveryOutcome.optional().meta({ description: 'Only those that ended so.' }),
      createdAfter: Moment.optional(),
      createdBefore: Moment.optional(),
      ...PageQuery,
    }),
    output: z.object({ deliveries: z.array(DeliverySummary), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'deliveries.get',
    method: 'GET',
    path: '/v1/deliveries/{delivery}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    cli: {
      fields: {
        delivery: 'delivery.id',
        at: '{delivery.source.kind} {delivery.source.name|-}',
        received: 'delivery.receivedAt',
        outcome: 'delivery.outcome',
        reason: 'delivery.reason',
        event: 'delivery.event',
        runs: 'delivery.matches.runId',
        'replay of': 'delivery.replayOf',
        attempt: 'delivery.attempts',
        method: 'delivery.method',
        query: 'delivery.query',
        headers: '{delivery.headers:json}',
        payload: '{delivery.payload.bytes:size}, {delivery.payload.contentType|no type}, kept {delivery.payload.kept}',
        text: 'delivery.payload.text',
      },
    },
    summary: 'Get a delivery with its headers, the beginning of its payload, and what became of it.',
    input: z.strictObject({ delivery: DeliveryId }),
    output: z.object({ delivery: Delivery }),
    faults: [],
    success: 200,
  }),
  payload: op({
    id: 'deliveries.payload',
    method: 'GET',
    path: '/v1/deliveries/{delivery}/payload',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    summary: 'Get the payload of a delivery, byte for byte and with its type as it came.',
    input: z.strictObject({ delivery: DeliveryId }),
    output: z.string(),
    faults: ['PAYLOAD_NOT_KEPT'],
    success: 200,
    wire: 'bytes',
  }),
  replay: op({
    id: 'deliveries.replay',
    method: 'POST',
    path: '/v1/deliveries/{delivery}/replay',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    cli: {
      print: ['{delivery.id}: {delivery.outcome} {delivery.matches.runId|}'],
      note: ['{delivery.reason}'],
    },
    summary: 'Take a delivery once more, byte for byte, by what is deployed now.',
    input: z.strictObject({
      delivery: DeliveryId,
      unverified: z.boolean().default(false).meta({
        description: 'True: although it does not verify. For a session of an admin only.',
      }),
      idempotencyKey: keyFor('delivery'),
    }),
    output: z.object({ delivery: Delivery }),
    faults: [
      'IDEMPOTENCY_CONFLICT',
      'DELIVERY_UNVERIFIED',
      'PAYLOAD_NOT_KEPT',
      'SECRETS_UNAVAILABLE',
      'WORKFLOW_DISABLED',
    ],
    success: 201,
  }),
}
