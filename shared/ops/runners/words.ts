import type { z } from 'zod'
import type { Runner } from '../../model/runner.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

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

export const runners: ExamplesOf<'runners'> = {
  list: {
    about:
      'Pages are joined by `nextCursor`. `activeRuns` against `slots` says how busy a machine is; runs ' +
      'that only wait take no slot.',
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
      'The same before, during and after a drain. `latestEndAt` is the timeout of the run, where it ' +
      'executes: nothing takes longer than the latest of them.',
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
      'The answer names the epoch: no claim commits at or after it. It is over when `intake.state` is ' +
      '`drained`; `runners.plan` says what is still waited for. A machine that is started again stays ' +
      'drained.',
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
      'Its connections are closed and its programs killed; runs that it had start again elsewhere as soon ' +
      'as it is known that they have stopped there. A revoked machine registers anew with a new token.',
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
