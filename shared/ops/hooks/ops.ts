import { z } from 'zod'
import { ConnectionId, HookId } from '../../ids.ts'
import { DeliveryReceipt } from '../../model/delivery.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  docs: 'What other systems call: they prove who they are by a signature or a secret.',
}

/** What other systems call: anybody may knock, and proves by a signature or a secret who it is. */
export const rows = {
  receive: op({
    id: 'hooks.receive',
    method: 'POST',
    path: '/v1/hooks/{hook}',
    credentials: [],
    scope: [],
    role: null,
    summary: 'Deliver to the webhook of a workflow. It is answered once the run is queued.',
    input: z.strictObject({ hook: HookId }),
    output: DeliveryReceipt,
    faults: ['UNVERIFIED', 'RATE_LIMITED', 'SECRETS_UNAVAILABLE'],
    success: 200,
    carries: 'delivery',
    body: 'raw',
  }),
  probe: op({
    id: 'hooks.probe',
    method: 'OPTIONS',
    path: '/v1/hooks/{hook}',
    credentials: [],
    scope: [],
    role: null,
    summary: 'May this origin deliver here? Asked by senders of CloudEvents.',
    input: z.strictObject({ hook: HookId }),
    output: z.string(),
    faults: ['RATE_LIMITED'],
    success: 200,
    wire: 'bytes',
    body: 'raw',
  }),
  receiveInbound: op({
    id: 'hooks.receiveInbound',
    method: 'POST',
    path: '/v1/inbound/{connection}',
    credentials: [],
    scope: [],
    role: null,
    summary: 'Deliver to a connection. It is answered once all runs that it starts are queued.',
    input: z.strictObject({ connection: ConnectionId }),
    output: DeliveryReceipt,
    faults: ['UNVERIFIED', 'RATE_LIMITED', 'SECRETS_UNAVAILABLE'],
    success: 200,
    carries: 'delivery',
    body: 'raw',
  }),
  probeInbound: op({
    id: 'hooks.probeInbound',
    method: 'OPTIONS',
    path: '/v1/inbound/{connection}',
    credentials: [],
    scope: [],
    role: null,
    summary: 'May this origin deliver here? Asked by senders of CloudEvents.',
    input: z.strictObject({ connection: ConnectionId }),
    output: z.string(),
    faults: ['RATE_LIMITED'],
    success: 200,
    wire: 'bytes',
    body: 'raw',
  }),
}
