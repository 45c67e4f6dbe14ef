import { z } from 'zod'
import { EnvironmentId, RunId, ScheduleId, Slug, WorkflowId } from '../ids.ts'
import { CatchUp, Overlap } from './late-rules.ts'
import { RunStatus } from './run.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** A list of all minutes has 165. Lists show each pattern in words, which are made of it each time. */
export const MOST_CRON_CHARS = 200
/** The longest time by which a tick is put off. */
export const MOST_JITTER_MS = 3_600_000
/** What is missed for longer is not caught up. */
export const MOST_CATCH_UP_WINDOW_MS = 7 * 86_400_000

/** What runs are called with, as JSON: in lists each schedule is shown with it. */
export const MOST_SCHEDULE_INPUT_BYTES = 64 * 1024

/** When a schedule starts runs, and with what. */
export const Schedule = z
  .object({
    id: ScheduleId,
    org: Slug,
    workflow: z.object({ id: WorkflowId, slug: Slug }),
    name: z.string().nullable(),
    source: z.enum(['api', 'descriptor']).meta({ description: 'Made over the API, or by the descriptor.' }),
    kind: z.enum(['cron', 'rate', 'at']),
    words: z.string().meta({ description: 'When it ticks, in words.' }),
    cron: z.string().optional(),
    timezone: z.string().optional().meta({ description: 'Of `cron`.' }),
    rateMs: z.int().optional(),
    anchorAt: At.optional().meta({ description: 'Ticks of a rate lie whole steps behind it.' }),
    at: At.optional(),
    environment: z.string().nullable(),
    environmentId: EnvironmentId.nullable().meta({
      description: 'Null for one of the descriptor, whose environment is looked up by its name at each tick.',
    }),
    input: z.unknown(),
    jitterMs: z.int(),
    catchUp: CatchUp,
    catchUpWindowMs: z.int(),
    overlap: Overlap,
    enabled: z.boolean(),
    pausedBy: z.string().nullable().meta({ description: 'Id of the key or session that paused it.' }),
    createdAt: At,
    createdBy: z.string(),
    updatedAt: At,
    nextAt: At.nullable().meta({ description: 'The next tick; null while there is none, see `why`.' }),
    nextTimes: z
      .array(z.int())
      .meta({ description: 'The next five ticks, without jitter; fewer where they are more than eight years apart.' }),
    endedAt: At.nullable().meta({ description: 'Since when it ticks no more.' }),
    lastRun: z.object({ id: RunId, status: RunStatus, at: At }).nullable().meta({
      description: 'The newest run that it has started; `at` is its tick.',
    }),
  })
  .meta({ id: 'Schedule' })
export type Schedule = z.output<typeof Schedule>

/** Why ticks have started no run. */
export const GAP_REASONS = [
  'MISSED',
  'PAUSED',
  'OVERLAP',
  'ZONE_UNKNOWN',
  'WORKFLOW_DISABLED',
  'WORKFLOW_DELETED',
  'ENVIRONMENT_GONE',
  'POOL_GONE',
  'INPUT_INVALID',
  'REFUSED',
] as const

/** Ticks of which no run came, or that fired late. */
export const ScheduleGap = z
  .object({
    outcome: z.enum(['skipped', 'missed']).meta({
      description: '`missed`: nobody was there to fire them. `skipped`: they were not to, or could not.',
    }),
    reason: z.enum(GAP_REASONS),
    message: z.string().meta({ description: 'A sentence for people.' }),
    from: At.meta({ description: 'The first of them.' }),
    to: At.meta({ description: 'The last of them.' }),
    count: z.int(),
    runId: RunId.nullable().meta({ description: 'The unfinished run that they met.' }),
    caughtUp: z.int().meta({ description: 'How many of those that were missed fired late.' }),
    firedAt: At.nullable().meta({ description: 'When these did.' }),
  })
  .meta({ id: 'ScheduleGap' })
export type ScheduleGap = z.output<typeof ScheduleGap>

export const ScheduleWhy = z
  .object({
    schedule: ScheduleId,
    code: z
      .enum([
        'TICKS',
        'PAUSED',
        'ENDED',
        'ZONE_UNKNOWN',
        'WORKFLOW_DISABLED',
        'WORKFLOW_DELETED',
        'ENVIRONMENT_GONE',
        'POOL_GONE',
        'INPUT_INVALID',
        'REFUSED',
        'OVERLAP',
      ])
      .meta({ description: '`TICKS`: its next tick starts a run. Any other: what keeps it from that.' }),
    message: z.string().meta({ description: 'A sentence for people.' }),
    change: z.string().meta({ description: 'Who could change it, and how.' }),
    since: At.nullable(),
    nextAt: At.nullable(),
    last: ScheduleGap.nullable().meta({ description: 'The last ticks of which no run came.' }),
  })
  .meta({ id: 'ScheduleWhy' })
export type ScheduleWhy = z.output<typeof ScheduleWhy>
