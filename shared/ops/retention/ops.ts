import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { Retention, RetentionDays } from '../../model/retention.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'How long what has ended is kept.',
  docs: 'How long what has ended is kept, before it is deleted by itself.',
}

export const rows = {
  get: op({
    id: 'retention.get',
    method: 'GET',
    path: '/v1/orgs/{org}/retention',
    credentials: ['key', 'session'],
    scope: ['run:delete'],
    role: 'admin',
    cli: {
      fields: {
        'days of runs': '{retention.runsDays|as the service keeps them}',
        'days of deliveries': '{retention.deliveriesDays|as the service keeps them}',
        'days of runs, at most': '{retention.maxRunsDays|for ever}',
        'days of deliveries, at most': '{retention.maxDeliveriesDays|for ever}',
        'deletes from': 'retention.actsAt',
      },
    },
    summary: 'Get for how many days the org keeps runs that have ended, and deliveries.',
    input: z.strictObject({ org: Slug }),
    output: z.object({ retention: Retention }),
    faults: [],
    success: 200,
  }),
  update: op({
    id: 'retention.update',
    method: 'PATCH',
    path: '/v1/orgs/{org}/retention',
    credentials: ['key', 'session'],
    scope: ['run:delete'],
    role: 'admin',
    summary: 'Change for how many days the org keeps runs that have ended, and deliveries. What is older is deleted.',
    input: z.strictObject({
      org: Slug,
      runsDays: RetentionDays.runsDays.optional(),
      deliveriesDays: RetentionDays.deliveriesDays.optional(),
    }),
    output: z.object({ retention: Retention }),
    faults: [],
    success: 200,
  }),
}
