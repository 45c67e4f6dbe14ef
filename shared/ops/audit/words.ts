import type { z } from 'zod'
import type { AuditEntry } from '../../model/audit.ts'
import type { ExamplesOf } from '../example.ts'
import { IDS, NINE } from '../example-things.ts'

const ACTOR = { kind: 'session', id: IDS.session, name: 'ops' } as const

const ENTRIES: z.input<typeof AuditEntry>[] = [
  {
    id: IDS.auditEntry,
    org: 'acme',
    createdAt: NINE - 300_000,
    actor: ACTOR,
    via: 'rest',
    requestId: 'req_01m7w2n2n0c4mfd8v6x2kq1r7t',
    action: 'secrets.set',
    target: { type: 'secret', id: 'production/BANK_TOKEN', name: 'BANK_TOKEN' },
    before: null,
    after: { name: 'BANK_TOKEN', environment: 'production' },
  },
  {
    id: IDS.earlierAuditEntry,
    org: 'acme',
    createdAt: NINE - 540_000,
    actor: ACTOR,
    via: 'rest',
    requestId: 'req_01m7w2dr90s3yb5e1h9w8z4npq',
    action: 'variables.set',
    target: { type: 'variable', id: 'production/BANK_URL', name: 'BANK_URL' },
    before: { name: 'BANK_URL', environment: 'production', value: 'https://bank.example/v1' },
    after: { name: 'BANK_URL', environment: 'production', value: 'https://bank.example/v2' },
  },
]

export const audit: ExamplesOf<'audit'> = {
  list: {
    about:
      'Everything but the triggering of runs, which the runs themselves record. Entries are never changed ' +
      'nor removed, and hold no value of a secret or key. Filters are joined by "and", several actions by ' +
      '"or". Pages are joined by `nextCursor`.',
    input: { org: 'acme', action: ['secrets.*', 'variables.*'], createdAfter: NINE - 86_400_000, limit: 20 },
    output: { auditEntries: ENTRIES, nextCursor: null },
  },
}
