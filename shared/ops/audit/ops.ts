import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { AuditEntry } from '../../model/audit.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'Who changed what and when.',
  docs: 'Who changed what, when, and by which credential.',
}

export const rows = {
  list: op({
    id: 'audit.list',
    method: 'GET',
    path: '/v1/orgs/{org}/audit',
    credentials: ['key', 'session'],
    scope: ['audit_log:read'],
    role: 'admin',
    mcp: {
      tool: 'list_audit',
      when: 'To find out who changed what and when, newest first; by actor, action, target or time.',
    },
    summary: 'List what was changed in an org, newest first.',
    input: z.strictObject({
      org: Slug,
      actor: z.string().min(1).max(200).optional().meta({ description: 'Id of a credential, as in `actor.id`.' }),
      action: z.array(z.string().min(1).max(100)).min(1).max(20).optional().meta({
        description: 'Operations such as `keys.revoke`, or all of a group as `keys.*`.',
      }),
      target: z.string().min(1).max(200).optional().meta({ description: 'Id of what was changed.' }),
      createdAfter: z.int().min(0).optional().meta({ description: 'After; milliseconds since the Unix epoch.' }),
      createdBefore: z.int().min(0).optional().meta({ description: 'Before; milliseconds since the Unix epoch.' }),
      ...PageQuery,
    }),
    output: z.object({ auditEntries: z.array(AuditEntry), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
}
