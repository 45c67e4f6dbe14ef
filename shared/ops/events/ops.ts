import { z } from 'zod'
import { Slug } from '../../ids.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  docs: 'What happens in an org, live.',
}

export const rows = {
  stream: op({
    id: 'events.stream',
    method: 'GET',
    path: '/v1/orgs/{org}/events/stream',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    command: 'events',
    summary: 'Follow what happens to all runs of an org live, as Server-Sent Events.',
    input: z.strictObject({
      org: Slug,
      since: z.string().min(1).max(100).optional().meta({
        description: 'The `id` of the last event that was read; left out: from now on.',
      }),
    }),
    output: z.string(),
    faults: [],
    success: 200,
    wire: 'sse',
  }),
}
