import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { Org } from '../../model/org.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'The org.',
  docs: 'The org: whose all of this is.',
}

export const rows = {
  get: op({
    id: 'orgs.get',
    method: 'GET',
    path: '/v1/orgs/{org}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'viewer',
    cli: {
      fields: { org: 'org.slug', id: 'org.id', name: 'org.name', created: 'org.createdAt' },
    },
    summary: 'Get an org.',
    input: z.strictObject({ org: Slug }),
    output: z.object({ org: Org }),
    faults: [],
    success: 200,
  }),
}
