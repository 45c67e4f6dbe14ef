import type { z } from 'zod'
import type { Schedule, ScheduleGap } from '../../model/schedule.ts'
import type { ExamplesOf } from '../example.ts'
import { KEY_HEADER } from '../idempotency-key.ts'
import { DAY_MS, IDS, NINE, PAGING, QUEUED } from '../example-things.ts'

const HOUR_MS = 3_600_000

const REPORT: z.input<typeof Schedule> = {
  id: IDS.schedule,
  org: 'acme',
  workflow: { id: IDS.workflow, slug: 'approval' },
  name: 'weekday mornings',
  source: 'api',
  kind: 'cron',
  words: 'At 09:00, Monday through Friday (Europe/Zurich)',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Zurich',
  environment: 'production',
  environmentId: IDS.production,
  input: { payee: 'Ada', amount: 12_500 },
  jitterMs: 0,
  catchUp: 'last',
  catchUpWindowMs: HOUR_MS,
  overlap: 'skip',
  enabled: true,
  pausedBy: null,
  createdAt: NINE - 7 * DAY_MS,
  createdBy: IDS.ciKey,
  updatedAt: NINE - 7 * DAY_MS,
  nextAt: NINE + 3 * DAY_MS - HOUR_MS,
  nextTimes: [3, 4, 5, 6, 7].map((days) => NINE + days * DAY_MS - HOUR_MS),
  endedAt: null,
  lastRun: { id: IDS.run, status: 'completed', at: NINE - HOUR_MS },
}

const MET: z.input<typeof ScheduleGap> = {
  outcome: 'skipped',
  reason: 'OVERLAP',
  message: `Its run ${IDS.earlierRun} had not finished.`,
  from: NINE - DAY_MS - HOUR_MS,
  to: NINE - DAY_MS - HOUR_MS,
  count: 1,
  runId: IDS.earlierRun,
  caughtUp: 0,
  firedAt: null,
}

const OUTAGE: z.input<typeof ScheduleGap> = {
  outcome: 'missed',
  reason: 'MISSED',
  message: 'Nobody was there to fire 2 ticks in time; of these 1 fired late.',
  from: NINE - 3 * DAY_MS - HOUR_MS,
  to: NINE - 2 * DAY_MS - HOUR_MS,
  count: 2,
  runId: null,
  caughtUp: 1,
  firedAt: NINE - 2 * DAY_MS,
}

export const schedules: ExamplesOf<'schedules'> = {
  create: {
    about: [
      'Exactly one of `cron`, `rate` and `at` says when it ticks. A fixed time of `cron` fires once on its local day,',
      'whatever the clocks do; `*` and `/` in minute or hour go by elapsed time. What is no cron or no zone is refused',
      'with the field as written and the form that works. Each call makes a schedule, also with a name that another',
      'one has, unless an idempotency key says that it is the same call: then the first one is answered with 200. A',
      'key counts for the workflow. Where the first one was deleted since, the answer is `NOT_FOUND`.',
    ].join(' '),
    input: {
      org: 'acme',
      workflow: 'approval',
      name: 'weekday mornings',
      cron: '0 9 * * 1-5',
      timezone: 'Europe/Zurich',
      environment: 'production',
      input: { payee: 'Ada', amount: 12_500 },
      overlap: 'skip',
      idempotencyKey: 'weekday-mornings',
    },
    headers: KEY_HEADER,
    output: { schedule: { ...REPORT, lastRun: null } },
    fields: { name: 'What people read.', enabled: 'False: it is paused from the start.' },
  },
  list: {
    about: `Those that were made here and those of descriptors, without what has left its descriptor. ${PAGING}`,
    input: { org: 'acme', workflow: 'approval', limit: 20 },
    output: { schedules: [REPORT], nextCursor: null },
  },
  get: {
    about: [
      '`nextTimes` are the next five ticks, without jitter; fewer where they are more than eight years apart.',
      '`why` tells what keeps it from starting runs.',
    ].join(' '),
    input: { schedule: IDS.schedule },
    output: { schedule: REPORT },
  },
  update: {
    about: [
      'What is left out stays. The next tick is found from now on; one that is due already fires. Of a schedule of the',
      'descriptor `enabled` alone changes here, and deploys leave that; all else is `SCHEDULE_OF_DESCRIPTOR`.',
    ].join(' '),
    input: { schedule: IDS.schedule, enabled: false },
    output: {
      schedule: { ...REPORT, enabled: false, pausedBy: IDS.session, updatedAt: NINE, nextAt: null, nextTimes: [] },
    },
    fields: { name: 'What people read; null: none.' },
  },
  delete: {
    about: 'One of the descriptor is refused with `SCHEDULE_OF_DESCRIPTOR`: take it out there and deploy.',
    input: { schedule: IDS.schedule },
    output: {},
  },
  run: {
    about: [
      'The run has the trigger of a tick, with `manual: true` and the present moment as `at`. It starts also while',
      'another run of the schedule is unfinished, and while the schedule is paused. Each call makes a run, unless an',
      'idempotency key says that it is the same call, as with `runs.trigger`; a key counts for the workflow.',
    ].join(' '),
    input: { schedule: IDS.schedule, idempotencyKey: 'report-2026-11-21' },
    headers: KEY_HEADER,
    output: {
      run: {
        ...QUEUED,
        trigger: {
          kind: 'schedule',
          id: IDS.schedule,
          actor: IDS.ciKey,
          at: NINE,
          late: 0,
          catchUp: false,
          manual: true,
        },
        tags: [],
      },
    },
  },
  ticks: {
    about: `A tick that has fired is its run: \`runs.list\` with the id of the schedule as \`trigger\`. ${PAGING}`,
    input: { schedule: IDS.schedule, limit: 20 },
    output: { ticks: [MET, OUTAGE], nextCursor: null },
  },
  why: {
    about:
      'What its next tick would meet is tried: whether workflow, pool and environment are there, and the input fits.',
    input: { schedule: IDS.schedule },
    output: {
      why: {
        schedule: IDS.schedule,
        nextAt: NINE + 3 * DAY_MS - HOUR_MS,
        last: MET,
        code: 'TICKS',
        message: `It starts runs. Its next tick is at ${new Date(NINE + 3 * DAY_MS - HOUR_MS).toISOString()}.`,
        change: 'Nothing has to be changed.',
        since: null,
      },
    },
  },
}
