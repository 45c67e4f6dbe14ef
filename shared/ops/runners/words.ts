import type { z } from 'zod'
import type { RunnerPool } from '../../model/pool.ts'
import type { Runner } from '../../model/runner.ts'
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

const RUNNER: z.input<typeof Runner> = {
  id: IDS.runner,
  org: 'acme',
  pool: { id: IDS.pool, name: 'default' },
  name: 'build-1',
  status: 'online',
  intake: {
    state: 'open',
    epoch: 3,
    since: NINE - 7 * DAY_MS,
    by: { kind: 'caller', name: 'owner' },
    reason: '',
    deadlineAt: null,
    onDeadline: null,
  },
  quarantine: null,
  unready: [],
  labels: ['linux'],
  slots: 8,
  activeRuns: 1,
  live: { offered: 0, executing: 1, parked: 0 },
  currentRuns: [IDS.run],
  version: '0.1.0',
  protocol: 1,
  upgrade: null,
  platform: 'linux-x64',
  isolation: { level: 'process', user: 'own', cgroup: true, network: 'host' },
  createdAt: NINE - 60 * DAY_MS,
  lastPollAt: NINE - 1200,
  lastHeartbeatAt: NINE - 4100,
  copyRefusedAt: null,
}

const BY_CI = { kind: 'caller', name: 'ci' } as const
const DRAINING: z.input<typeof Runner> = {
  ...RUNNER,
  intake: {
    state: 'draining',
    epoch: 4,
    since: NINE,
    by: BY_CI,
    reason: 'kernel update',
    deadlineAt: NINE + 3_600_000,
    onDeadline: 'leave',
  },
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
      'What is left out stays, `null` takes a value back to its default. Machines hear of it with their next heartbeat; runs that execute keep what they were started with.',
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
      'Refused with `POOL_IN_USE` while it has runners, unfinished runs, or workflows whose current version names it. Registration tokens go with it.',
    input: { pool: IDS.gpuPool },
    output: {},
  },
  demand: {
    about:
      'Grow by `missingSlots`, shrink while `queuedRuns` is 0 and `freeSlots` is more than one machine has: drain a runner first. Sleeping runs count nowhere.',
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
      'Each call makes a new token; it is in this answer and nowhere else. On the new machine: `windlass agent start --url <address> --token <token>`. The agent makes a key pair of its own and needs the token never again.',
    input: { pool: IDS.pool, ttlMs: 900_000 },
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
  plan: {
    about:
      'The same before, during and after a drain. `latestEndAt` is the timeout of the run, where it executes: nothing takes longer than the latest of them.',
    input: { runner: IDS.runner },
    output: {
      plan: {
        runner: IDS.runner,
        epoch: 3,
        live: [
          {
            run: IDS.run,
            workflow: 'approval',
            status: 'running',
            since: NINE,
            outcome: 'finishes',
            latestEndAt: NINE + 3_600_000,
          },
        ],
        othersTakeWork: 0,
        queuedRuns: 3,
        warnings: ['No other runner of the pool takes work: what moves, goes back or is queued waits until one does.'],
      },
    },
  },
  cordon: {
    about: 'It changes no run. The same again changes nothing and answers the same epoch.',
    input: { runner: IDS.runner, reason: 'looks slow' },
    output: {
      runner: {
        ...RUNNER,
        intake: { ...RUNNER.intake, state: 'cordoned', epoch: 4, since: NINE, by: BY_CI, reason: 'looks slow' },
      },
    },
  },
  drain: {
    about:
      'The answer names the epoch: no claim commits at or after it. It is over when `intake.state` is `drained`; `runners.plan` says what is still waited for. A machine that is started again stays drained.',
    input: { runner: IDS.runner, deadlineMs: 3_600_000, onDeadline: 'leave', reason: 'kernel update' },
    output: { runner: DRAINING },
  },
  resume: {
    about: 'It asks for work again at once. A runner that takes work already is answered as it is.',
    input: { runner: IDS.runner },
    output: { runner: { ...RUNNER, intake: { ...RUNNER.intake, epoch: 5, since: NINE, by: BY_CI } } },
  },
  revoke: {
    about:
      'Its connections are closed and its programs killed; runs that it had start again elsewhere as soon as it is known that they have stopped there. A revoked machine registers anew with a new token.',
    input: { runner: IDS.runner, reason: 'laptop was stolen' },
    output: {
      runner: {
        ...RUNNER,
        status: 'offline',
        intake: { ...RUNNER.intake, state: 'revoked', epoch: 4, since: NINE, by: BY_CI, reason: 'laptop was stolen' },
        live: { offered: 0, executing: 0, parked: 0 },
        activeRuns: 0,
        currentRuns: [],
      },
    },
  },
  deregister: {
    about: 'Runs that it executed keep its name. One that is online or has runs is refused with `RUNNER_BUSY`.',
    input: { runner: IDS.runner, force: false },
    output: {},
  },
}
