import type { z } from 'zod'
import type { RunnerPool } from '../../model/pool.ts'
import type { RegistrationToken } from '../../model/registration-token.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const SETTINGS: z.input<typeof RunnerPool>['settings'] = {
  isolation: 'process',
  network: 'host',
  reassignAfterMs: null,
  slots: null,
  labels: [],
  limits: { memoryMb: null, cpus: null, processes: null, openFiles: null, diskMb: null },
  parkedMs: null,
  drainMs: null,
}

const POOL: z.input<typeof RunnerPool> = {
  id: IDS.pool,
  org: 'acme',
  name: 'default',
  settings: SETTINGS,
  runners: 1,
  queuedRuns: 0,
  createdAt: NINE - 90 * DAY_MS,
}

const TOKEN: z.input<typeof RegistrationToken> = {
  id: IDS.registrationToken,
  pool: { id: IDS.pool, name: 'default' },
  usesLeft: 1,
  createdAt: NINE,
  createdBy: IDS.ownerKey,
  expiresAt: NINE + 900_000,
}

export const pools: ExamplesOf<'pools'> = {
  list: {
    about:
      'Pages are joined by `nextCursor`. A workflow names its pool in `workflow.jsonc`; `default` is ' +
      'there from the beginning.',
    input: { org: 'acme', limit: 20 },
    output: { runnerPools: [POOL], nextCursor: null },
  },
  create: {
    about:
      'It has no runners at first. A name that is taken is refused with `CONFLICT`. An org has ' +
      '500 pools at most. Next: `pools.createToken`, and an agent with that token.',
    input: { org: 'acme', name: 'gpu' },
    output: { runnerPool: { ...POOL, id: IDS.gpuPool, name: 'gpu', runners: 0, createdAt: NINE } },
    fields: {
      name: 'Lower-case letters, digits and dashes; unique in the org.',
      settings: 'What its machines are told; see `pools.update`.',
    },
  },
  get: {
    about: 'What its machines are told, and how many of them there are.',
    input: { pool: IDS.pool },
    output: { runnerPool: POOL },
  },
  update: {
    about:
      'What is left out stays, `null` takes a value back to its default. Machines hear of it with their ' +
      'next heartbeat; runs that execute keep what they were started with.',
    input: { pool: IDS.pool, settings: { isolation: 'bubblewrap', limits: { memoryMb: 2048 }, labels: ['eu'] } },
    output: {
      runnerPool: {
        ...POOL,
        settings: {
          ...SETTINGS,
          isolation: 'bubblewrap',
          limits: { ...SETTINGS.limits, memoryMb: 2048 },
          labels: ['eu'],
        },
      },
    },
    fields: { settings: 'Only what is to change.' },
  },
  delete: {
    about:
      'Refused with `POOL_IN_USE` while it has runners, unfinished runs, or workflows whose current ' +
      'version names it. Registration tokens go with it.',
    input: { pool: IDS.gpuPool },
    output: {},
  },
  demand: {
    about:
      'Grow by `missingSlots`, shrink while `queuedRuns` is 0 and `freeSlots` is more than one machine ' +
      'has: drain a runner first. Sleeping runs count nowhere.',
    input: { org: 'acme', pool: 'default' },
    output: {
      demand: {
        pool: { id: IDS.pool, name: 'default' },
        queuedRuns: 3,
        queuedSlots: 3,
        oldestQueuedAt: NINE - 2000,
        executingRuns: 8,
        usedSlots: 8,
        slots: 8,
        freeSlots: 0,
        runners: { online: 1, takingWork: 1, draining: 0, offline: 0 },
        missingSlots: 3,
        byLabels: [{ labels: [], queuedRuns: 3, queuedSlots: 3, freeSlots: 0 }],
      },
    },
    fields: { pool: 'Id or name of a pool.' },
  },
  createToken: {
    about:
      'Each call makes a new token; it is in this answer and nowhere else. On the new machine: `windlass ' +
      'agent start --url <address> --token <token>`. The agent makes a key pair of its own and needs the ' +
      'token never again. It ends when the key or session that made it is revoked.',
    input: { pool: IDS.pool, ttlMs: 900_000 },
    output: {
      registrationToken: {
        id: IDS.registrationToken,
        token: 'wlr_4Q9vXk2mT7cBz1RfY8nHs6LdW0pJ3gKaE5uVxCiZ00000',
        uses: 1,
        expiresAt: NINE + 900_000,
      },
    },
    fields: { reusable: 'Whether it serves more than once.' },
  },
  listTokens: {
    about: 'Those that have expired or were used up are left out. Pages are joined by `nextCursor`.',
    input: { pool: IDS.pool, limit: 20 },
    output: { registrationTokens: [TOKEN], nextCursor: null },
  },
  revokeToken: {
    about:
      'By its id, which `pools.createToken` and `pools.listTokens` tell; never by the token. The audit log tells ' +
      'which agents have joined by it: it is their actor there. `runners.revoke` shuts one out.',
    input: { token: IDS.registrationToken },
    output: {},
    fields: { token: 'Id of the registration token; not the token itself.' },
  },
}
