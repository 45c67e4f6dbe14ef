import type { z } from 'zod'
import type { Runner } from '../../model/runner.ts'
import type { ExamplesOf } from './example.ts'
import { DAY_MS, IDS, NINE } from './things.ts'

const POOL = {
  id: IDS.pool,
  org: 'acme',
  name: 'default',
  runners: 1,
  queuedRuns: 0,
  createdAt: NINE - 90 * DAY_MS,
}

const RUNNER: z.input<typeof Runner> = {
  id: IDS.runner,
  org: 'acme',
  pool: { id: IDS.pool, name: 'default' },
  name: 'build-1',
  status: 'online',
  labels: ['linux'],
  slots: 8,
  activeRuns: 1,
  version: '0.1.0',
  platform: 'linux x64',
  createdAt: NINE - 60 * DAY_MS,
  lastPollAt: NINE - 1200,
  lastHeartbeatAt: NINE - 4100,
}

export const pools: ExamplesOf<'pools'> = {
  list: {
    about:
      'Pages are joined by `nextCursor`. A workflow names its pool in `workflow.jsonc`; `default` is there from the beginning.',
    input: { org: 'acme', limit: 20 },
    output: { runnerPools: [POOL], nextCursor: null },
  },
  create: {
    about:
      'It has no runners at first. A name that is taken is refused with `CONFLICT`. Next: `pools.createToken`, and an agent with that token.',
    input: { org: 'acme', name: 'gpu' },
    output: { runnerPool: { ...POOL, id: IDS.gpuPool, name: 'gpu', runners: 0, createdAt: NINE } },
    fields: { name: 'Lower-case letters, digits and dashes; unique in the org.' },
  },
  createToken: {
    about:
      'Each call makes a new token; it is in this answer and nowhere else. On the new machine: `windlass agent start --url <address> --token <token>`. The agent makes a key pair of its own and needs the token never again.',
    input: { pool: IDS.pool, ttlSeconds: 900 },
    output: {
      registrationToken: {
        token: 'wlr_4Q9vXk2mT7cBz1RfY8nHs6LdW0pJ3gKaE5uVxCiZ00000',
        uses: 1,
        expiresAt: NINE + 900_000,
      },
    },
    fields: { reusable: 'Whether it serves more than once.' },
  },
}

export const runners: ExamplesOf<'runners'> = {
  list: {
    about:
      'Pages are joined by `nextCursor`. `activeRuns` against `slots` says how busy a machine is; runs that only wait take no slot.',
    input: { org: 'acme', pool: 'default', status: 'online', limit: 20 },
    output: { runners: [RUNNER], nextCursor: null },
    fields: { pool: 'Id or name of a pool.' },
  },
  get: {
    about: 'What it executes is found by its runs: `runs.get` names the runner of a run.',
    input: { runner: IDS.runner },
    output: { runner: RUNNER },
  },
}
