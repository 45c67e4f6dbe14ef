import { z } from 'zod'
import { Slug, WorkflowRef } from '../../ids.ts'
import { OverlapMs, Webhook, WebhookAuth } from '../../model/webhook.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'Where other systems start a workflow.',
  docs: 'Where other systems start a workflow.',
}

const SHOWN = {
  print: ['{webhook.url}'],
  note: [
    '{webhook.auth} in {webhook.header}; runs get the {webhook.input}',
    '{webhook.urlNote}',
    'Secret made: {webhook.rotatedAt|not yet}. Next: windlass webhooks rotate {workflow} makes a new one',
  ],
}

export const rows = {
  get: op({
    id: 'webhooks.get',
    method: 'GET',
    path: '/v1/orgs/{org}/workflows/{workflow}/webhook',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'member',
    cli: SHOWN,
    summary: 'Get the webhook of a workflow: where other systems post to start it.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef }),
    output: z.object({ webhook: Webhook }),
    faults: [],
    success: 200,
  }),
  set: op({
    id: 'webhooks.set',
    method: 'PUT',
    path: '/v1/orgs/{org}/workflows/{workflow}/webhook',
    credentials: ['session'],
    scope: [],
    role: 'admin',
    cli: { ...SHOWN, help: ['  windlass webhooks set hello --auth bearer'] },
    summary: 'Set how deliveries at the webhook of a workflow prove where they come from.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef, auth: WebhookAuth }),
    output: z.object({ webhook: Webhook }),
    faults: [],
    success: 200,
  }),
  rotate: op({
    id: 'webhooks.rotate',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/webhook/rotate',
    credentials: ['session'],
    scope: [],
    role: 'admin',
    stops: true,
    summary: 'Make a new secret for the webhook of a workflow, and show it once.',
    input: z.strictObject({ org: Slug, workflow: WorkflowRef, overlapMs: OverlapMs }),
    output: z.object({ webhook: Webhook, secret: z.string() }),
    faults: ['CONFLICT', 'SECRETS_UNAVAILABLE'],
    success: 200,
  }),
}
