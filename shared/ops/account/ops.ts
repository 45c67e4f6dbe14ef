import { z } from 'zod'
import { Credential, Org } from '../../model/org.ts'
import { Scope } from '../../scopes.ts'
import { op } from '../op.ts'

export const account = {
  get: op({
    id: 'account.get',
    method: 'GET',
    path: '/v1/me',
    door: 'caller',
    scope: [...Scope.options],
    role: 'viewer',
    summary: 'Whom a credential stands for: its kind, org, role and scopes.',
    input: z.strictObject({}),
    output: z.object({ me: z.object({ credential: Credential, org: Org }) }),
    faults: [],
    success: 200,
  }),
}
