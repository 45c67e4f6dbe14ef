import { z } from 'zod'
import { Credential, Org } from '../../model/org.ts'
import { Scope } from '../../scopes.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'Whom a credential stands for.',
  docs: 'Whom a credential stands for.',
}

export const rows = {
  get: op({
    id: 'account.get',
    method: 'GET',
    path: '/v1/me',
    credentials: ['key', 'session'],
    scope: [...Scope.options],
    role: 'viewer',
    cli: {
      fields: {
        credential: '{me.credential.kind} {me.credential.name}',
        id: 'me.credential.id',
        role: 'me.credential.role',
        scopes: '{me.credential.scopes|all that the role may do}',
        org: '{me.org.slug} ({me.org.name})',
      },
    },
    summary: 'Whom a credential stands for: its kind, org, role and scopes.',
    input: z.strictObject({}),
    output: z.object({ me: z.object({ credential: Credential, org: Org }) }),
    faults: [],
    success: 200,
  }),
}
