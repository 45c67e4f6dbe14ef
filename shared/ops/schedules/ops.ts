import { z } from 'zod'
import { EnvironmentRef, ScheduleId, Slug, WorkflowRef } from '../../ids.ts'
import { duration } from '../../model/duration.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { Run } from '../../model/run.ts'
import { CatchUp, DEFAULT_CATCH_UP_WINDOW_MS, Overlap } from '../../model/late-rules.ts'
import {
  MOST_CATCH_UP_WINDOW_MS,
  MOST_CRON_CHARS,
  MOST_JITTER_MS,
  Schedule,
  ScheduleGap,
  ScheduleWhy,
} from '../../model/schedule.ts'
import { LAST_MOMENT } from '../../time.ts'
import type { Group } from '../group.ts'
import { keyFor } from '../idempotency-key.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'What starts runs by itself: create, list, pause, run, explain.',
  docs: 'What starts runs by itself: by cron and time zone, at a rate, or once.',
}

const Name = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .refine((name) => !name.includes('\0') && name.isWellFormed(), 'holds U+0000 or half of a surrogate pair')
const Moment = z.union([z.int().min(0).max(LAST_MOMENT), z.iso.datetime({ offset: true })], {
  error: 'must be milliseconds since the Unix epoch, or a time with its offset, such as "2027-01-31T09:00:00Z"',
})
const Input = z.unknown().optional().meta({ description: 'What its runs are called with: any JSON. Default: null.' })

/** When it ticks: exactly one of `cron`, `rate`, `at`. */
const WHEN = {
  cron: z.string().max(MOST_CRON_CHARS).optional().meta({
    description: 'Five fields: minute, hour, day of month, month, day of week. Exactly one of `cron`, `rate`, `at`.',
  }),
  timezone: z.string().max(100).optional().meta({ description: 'Of `cron`, as IANA names it. Default: UTC.' }),
  rate: duration({ min: '10s', max: '366d' }).optional().meta({ description: 'How often: `15m`, or milliseconds.' }),
  at: Moment.optional().meta({ description: 'Once, at this time: milliseconds, or ISO 8601 with an offset.' }),
  anchorAt: Moment.optional().meta({
    description: 'Ticks of a rate lie whole steps behind this time. Default: the creation.',
  }),
}
const jitterMs = z.int().min(0).max(MOST_JITTER_MS)
const catchUpWindowMs = z.int().min(0).max(MOST_CATCH_UP_WINDOW_MS)
const JITTER = { description: 'Each tick is put off by up to so many milliseconds, the same on any coordinator.' }
const WINDOW = { description: 'What was missed longer ago than so many milliseconds is not caught up.' }

const ScheduleAnswer = z.object({ schedule: Schedule })

export const rows = {
  create: op({
    id: 'schedules.create',
    method: 'POST',
    path: '/v1/orgs/{org}/schedules',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    mcp: {
      tool: 'create_schedule',
      when: [
        'To run a workflow by itself: by `cron` and `timezone`, at a `rate` such as `15m`, or once `at` a time.',
        'The answer has the next five times: check them.',
        'A schedule that belongs to the workflow itself goes into its descriptor.',
      ].join(' '),
      openWorld: true,
    },
    summary: 'Create a schedule that starts runs of a workflow.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      name: Name.optional(),
      ...WHEN,
      environment: EnvironmentRef.nullable().optional().meta({
        description: 'Whose variables and secrets its runs get; left out or null: those of the org.',
      }),
      input: Input,
      jitterMs: jitterMs.default(0).meta(JITTER),
      catchUp: CatchUp.default('last'),
      catchUpWindowMs: catchUpWindowMs.default(DEFAULT_CATCH_UP_WINDOW_MS).meta(WINDOW),
      overlap: Overlap.default('allow'),
      enabled: z.boolean().default(true),
      idempotencyKey: keyFor('schedule'),
    }),
    output: ScheduleAnswer,
    faults: ['NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'CONFLICT', 'IDEMPOTENCY_CONFLICT'],
    success: 201,
  }),
  list: op({
    id: 'schedules.list',
    method: 'GET',
    path: '/v1/orgs/{org}/schedules',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    mcp: {
      tool: 'list_schedules',
      when: 'To see what starts runs by itself, when next, and what became of the last time.',
    },
    cli: {
      table: {
        columns: {
          SCHEDULE: 'id',
          WORKFLOW: 'workflow.slug',
          ENABLED: 'enabled',
          NEXT: 'nextAt',
          'LAST RUN?': 'lastRun.status',
          'NAME?': 'name',
          'ENDED?': 'endedAt',
          WHEN: 'words',
        },
        none: 'No schedules. Next: windlass schedules create <workflow> --rate 1h',
      },
      help: ['  windlass schedules list', '  windlass schedules list --workflow report'],
    },
    summary: 'List the schedules of an org, newest first.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef.optional().meta({ description: 'Only those of this workflow: its slug or id.' }),
      ...PageQuery,
    }),
    output: z.object({ schedules: z.array(Schedule), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'schedules.get',
    method: 'GET',
    path: '/v1/schedules/{schedule}',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    cli: {
      fields: {
        schedule: 'schedule.id',
        name: 'schedule.name',
        workflow: 'schedule.workflow.slug',
        when: 'schedule.words',
        enabled: 'schedule.enabled',
        ended: 'schedule.endedAt',
        source: 'schedule.source',
        'made by': 'schedule.createdBy',
        environment: 'schedule.environment',
        input: 'schedule.input',
        overlap: 'schedule.overlap',
        'catch up': '{schedule.catchUp}, within {schedule.catchUpWindowMs}',
        jitter: 'schedule.jitterMs',
        anchor: 'schedule.anchorAt',
        'last run': '{schedule.lastRun.id} ({schedule.lastRun.status}), of {schedule.lastRun.at:time}',
        next: 'schedule.nextTimes.*:time',
      },
      note: ['Next: windlass schedules why {schedule.id} says when it starts its next run, or why it starts none'],
    },
    summary: 'Get a schedule with its next five times and its last run.',
    input: z.strictObject({ schedule: ScheduleId }),
    output: ScheduleAnswer,
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  update: op({
    id: 'schedules.update',
    method: 'PATCH',
    path: '/v1/schedules/{schedule}',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    stops: { enabled: false },
    summary: 'Change a schedule, pause it or let it go on. Of one of the descriptor only `enabled` changes here.',
    input: z.strictObject({
      schedule: ScheduleId,
      name: Name.nullable().optional(),
      ...WHEN,
      environment: EnvironmentRef.nullable().optional().meta({
        description: 'Whose variables and secrets its runs get; null: those of the org.',
      }),
      input: Input,
      jitterMs: jitterMs.optional().meta(JITTER),
      catchUp: CatchUp.optional(),
      catchUpWindowMs: catchUpWindowMs.optional().meta(WINDOW),
      overlap: Overlap.optional(),
      enabled: z.boolean().optional().meta({ description: 'False pauses it: what ticks meanwhile is skipped.' }),
    }),
    output: ScheduleAnswer,
    faults: ['NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'SCHEDULE_OF_DESCRIPTOR'],
    success: 200,
  }),
  delete: op({
    id: 'schedules.delete',
    method: 'DELETE',
    path: '/v1/schedules/{schedule}',
    credentials: ['key', 'session'],
    scope: ['workflow:update'],
    role: 'member',
    stops: true,
    mcp: {
      tool: 'delete_schedule',
      when: 'To end a schedule for good. Runs that it has started go on. One of the descriptor is taken out there.',
    },
    cli: {
      print: ['{schedule} is deleted; runs that it has started go on'],
    },
    summary: 'Delete a schedule. Runs that it has started go on.',
    input: z.strictObject({ schedule: ScheduleId }),
    output: z.object({}),
    faults: ['NOT_FOUND', 'SCHEDULE_OF_DESCRIPTOR'],
    success: 204,
  }),
  run: op({
    id: 'schedules.run',
    method: 'POST',
    path: '/v1/schedules/{schedule}/run',
    credentials: ['key', 'session'],
    scope: ['run:trigger'],
    role: 'member',
    mcp: {
      tool: 'run_schedule',
      when: 'To start a run as the schedule would, now; its ticks stay. Follow the run with get_run_output.',
      openWorld: true,
    },
    cli: {
      print: ['{run.id}'],
      note: ['Next: windlass logs -f {run.id}'],
    },
    summary: 'Start a run as the schedule would, now.',
    input: z.strictObject({
      schedule: ScheduleId,
      input: z.unknown().optional().meta({ description: 'Any JSON in place of the input of the schedule.' }),
      idempotencyKey: keyFor('run'),
    }),
    output: z.object({ run: Run }),
    faults: ['NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'IDEMPOTENCY_CONFLICT', 'WORKFLOW_DISABLED'],
    success: 201,
    carries: 'input',
  }),
  ticks: op({
    id: 'schedules.ticks',
    method: 'GET',
    path: '/v1/schedules/{schedule}/ticks',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    cli: {
      table: {
        columns: {
          FROM: '{from:time}',
          TO: '{to:time}',
          TICKS: 'count',
          OUTCOME: 'outcome',
          REASON: 'reason',
          WHY: 'message',
        },
        none: 'No tick was skipped or missed.',
      },
      help: ['Ticks that have fired are runs: windlass runs list --trigger sch_…', '  windlass schedules ticks sch_…'],
    },
    summary: 'List the ticks of which no run came, or that fired late, as ranges, the newest first.',
    input: z.strictObject({ schedule: ScheduleId, ...PageQuery }),
    output: z.object({ ticks: z.array(ScheduleGap), nextCursor: NextCursor }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  why: op({
    id: 'schedules.why',
    method: 'GET',
    path: '/v1/schedules/{schedule}/why',
    credentials: ['key', 'session'],
    scope: ['workflow:read'],
    role: 'viewer',
    cli: {
      print: [
        '{why.code}: {why.message}',
        'Since {why.since:time}.',
        '{why.change}',
        'Last {why.last.outcome}: {why.last.message} ({why.last.to:time})',
      ],
    },
    summary: 'Why a schedule starts no runs, or when it starts the next.',
    input: z.strictObject({ schedule: ScheduleId }),
    output: z.object({ why: ScheduleWhy }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
}
