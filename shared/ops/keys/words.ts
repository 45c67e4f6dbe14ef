import type { z } from 'zod'
import type { ApiKey } from '../../model/api-key.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const CI_KEY: z.input<typeof ApiKey> = {
  id: IDS.ciKey,
  org: 'acme',
  name: 'ci',
  prefix: 'wl_7hQ2mXc',
  role: 'member',
  scopes: ['run:trigger', 'run:read'],
  createdAt: NINE - 10 * DAY_MS,
  createdBy: IDS.ownerKey,
  expiresAt: NINE + 80 * DAY_MS,
  lastUsedAt: NINE,
  revokedAt: null,
}

export const keys: ExamplesOf<'keys'> = {
  list: {
    about: 'With those that have expired or were revoked. Pages are joined by `nextCursor`.',
    input: { org: 'acme', limit: 20 },
    output: { apiKeys: [CI_KEY], nextCursor: null },
  },
  create: {
    about:
      'Each call makes a new key. Its role is at most that of the session. Without scopes it may do all ' +
      'that its role may; with some exactly these, and nothing that no scope names. API keys cannot do ' +
      'this at any scope: use a session, or `windlass admin keys create` on the host of the coordinator.',
    input: {
      org: 'acme',
      name: 'ci',
      role: 'member',
      scopes: ['run:trigger', 'run:read'],
      expiresAt: NINE + 80 * DAY_MS,
    },
    output: {
      apiKey: { ...CI_KEY, lastUsedAt: null },
      key: 'wl_7hQ2mXcV9kTz4RfY8nBs6LdW0pJ3gKaE5uHxCiZ1tM00000',
    },
    fields: {
      name: 'What it is for, for people.',
      scopes: 'Empty: everything that the role may do. Otherwise exactly these.',
    },
  },
  revoke: {
    about:
      'For good: a revoked key does not come back. Registration tokens that it has made are revoked with it, and ' +
      'bulk jobs that it has under way are cancelled; agents that have joined by its tokens stay. Runs that it has ' +
      'started go on, and so do its `schedules`.',
    input: { org: 'acme', key: IDS.ciKey },
    output: { schedules: 1, registrationTokens: 0, jobs: 0 },
  },
}
