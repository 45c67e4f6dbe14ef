import { z } from 'zod'
import { InputId, PoolId, RunId, RunnerId, Slug, WorkflowId } from '../ids.ts'

export const RUN_STATUSES = [
  'queued',
  'pending',
  'running',
  'completed',
  'failed',
  'cancelling',
  'cancelled',
  'sleeping',
  'awaiting_input',
  'waiting_for_child',
] as const
export const RunStatus = z.enum(RUN_STATUSES)
export type RunStatus = z.output<typeof RunStatus>

/** Holding its place without computing. */
export const SUSPENDED = ['sleeping', 'awaiting_input', 'waiting_for_child'] as const satisfies readonly RunStatus[]
export type SuspendedStatus = (typeof SUSPENDED)[number]

export function isSuspended(status: RunStatus): status is SuspendedStatus {
  return (SUSPENDED as readonly RunStatus[]).includes(status)
}

export type FinalStatus = 'completed' | 'failed' | 'cancelled'

/** The one transition table. A move that is not in it is a bug of ours, never an answer to a caller. */
const NEXT: Record<RunStatus, readonly RunStatus[]> = {
  queued: ['pending', 'failed', 'cancelling'],
  pending: ['running', 'queued', 'failed', 'cancelling'],
  running: ['completed', 'failed', 'sleeping', 'awaiting_input', 'waiting_for_child', 'queued', 'cancelling'],
  sleeping: ['running', 'failed', 'queued', 'cancelling'],
  awaiting_input: ['running', 'failed', 'queued', 'cancelling'],
  waiting_for_child: ['running', 'failed', 'queued', 'cancelling'],
  cancelling: ['cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
}

export function mayMove(from: RunStatus, to: RunStatus): boolean {
  return NEXT[from].includes(to)
}

/**
 * Throws when a run may not go from one status to the other. Every write of a status passes here, but that of a claim:
 * it is one statement, and names what it moves from.
 */
export function assertMove(from: RunStatus, to: RunStatus): void {
  if (!mayMove(from, to)) throw new Error(`a run never moves from ${from} to ${to}`)
}

export function isFinal(status: RunStatus): status is FinalStatus {
  return NEXT[status].length === 0
}

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

export const TriggerKind = z.enum(['api', 'webhook', 'schedule', 'mcp', 'child', 'retry', 'connection'])
export type TriggerKind = z.output<typeof TriggerKind>

/** Ids of what starts runs by itself. */
const TRIGGER_ID = '(?:sch|hook|conn)_[0-9a-hjkmnp-tv-z]{26}'

/** In a list of runs: how they were started, or by which schedule, webhook or connection. */
export const TriggerFilter = z.string().regex(new RegExp(`^(?:${TriggerKind.options.join('|')}|${TRIGGER_ID})$`), {
  error: `must be one of ${TriggerKind.options.join(', ')}, or the id of a schedule, webhook or connection`,
})

export const RunTrigger = z.object({
  kind: TriggerKind,
  id: z.string().optional().meta({ description: 'Of the schedule, of the run that was retried, and so on.' }),
  actor: z.string().optional(),
  at: z.int().optional().meta({
    description: 'The tick of a schedule, for which the run was started: milliseconds since the Unix epoch.',
  }),
  late: z.int().optional().meta({ description: 'By how many milliseconds it was started late.' }),
  catchUp: z.boolean().optional().meta({ description: 'True when the tick had been missed.' }),
  manual: z.boolean().optional().meta({ description: 'True when somebody ran the schedule by hand; `at` is then.' }),
})
export type RunTrigger = z.output<typeof RunTrigger>

export const RunError = z.object({
  code: z.string(),
  message: z.string(),
  detail: z.record(z.string(), z.unknown()).optional(),
})
export type RunError = z.output<typeof RunError>

const Waiting = z
  .object({
    for: z
      .enum(['sleep', 'input', 'child'])
      .meta({ description: 'The first of input, child, sleep that is waited for.' }),
    since: At,
    until: At.optional().meta({ description: 'When the earliest timer is due.' }),
    inputId: InputId.optional(),
    childRunIds: z.array(RunId).optional().meta({ description: 'At most 100; `/children` has all.' }),
  })
  .meta({ description: 'What a suspended run waits for; null for every other.' })

/** Why a suspended run cannot continue by itself. */
export const Blocked = z.object({
  code: z.literal('REPLAY_MISMATCH'),
  message: z.string(),
  expected: z.string().meta({ description: 'What the journal has.' }),
  received: z.string().meta({ description: 'What the program did in its place.' }),
  at: z.string().meta({ description: 'File and line where it did that.' }),
})
export type Blocked = z.output<typeof Blocked>

/** A run that lost its process: what is known about how. */
export const Loss = z.object({
  at: At,
  attempt: z.int(),
  runner: z.object({ id: RunnerId, name: z.string() }).nullable(),
  what: z.enum(['program', 'daemon', 'host', 'network', 'unknown', 'operator']).meta({
    description:
      'What was lost: the program alone, the agent, its machine, or the way to it. `unknown` until the runner is heard of again. `operator`: somebody took it away.',
  }),
  reason: z.string(),
  lastAckAt: At.nullable().meta({ description: 'When something of the run was last taken from its agent.' }),
  lastRenewalAt: At.nullable().meta({ description: 'When its agent last renewed its lease.' }),
  lengthenedMs: z.int().nullable().meta({
    description:
      'By how much its lease had been lengthened after an outage of coordinator or database. Null: by nothing.',
  }),
})
export type Loss = z.output<typeof Loss>

const RunBudget = z.object({
  tokens: z.int().nullable().meta({ description: 'At most so many tokens. Null: no bound.' }),
  costMicros: z.int().nullable().meta({ description: 'At most so many micro-dollars. Null: no bound.' }),
  spentTokens: z.int(),
  spentMicros: z.int(),
  reservedMicros: z.int().meta({ description: 'For calls that are under way.' }),
  onBreach: z.enum(['notify', 'ask', 'cancel']),
})

export const Run = z
  .object({
    id: RunId,
    org: Slug,
    workflow: z.object({ id: WorkflowId, slug: Slug, version: z.int() }),
    status: RunStatus,
    trigger: RunTrigger,
    environment: z.string().nullable(),
    tags: z.array(z.string()),
    priority: z.int(),
    attempt: z.int().meta({ description: 'Starts at 1; a restart after a crash adds one.' }),
    parentRunId: RunId.nullable(),
    rootRunId: RunId.nullable(),
    retryOf: RunId.nullable(),
    pool: z.object({ id: PoolId, name: Slug }),
    runner: z.object({ id: RunnerId, name: z.string() }).nullable(),
    isolation: z
      .string()
      .nullable()
      .meta({ description: 'What kept the program apart from its host, as in `bubblewrap, own user, cgroup`.' }),
    lost: Loss.nullable().meta({ description: 'How the run last lost its process, when it ever did.' }),
    waiting: Waiting.nullable(),
    blocked: Blocked.nullable().meta({ description: 'Set when a replay met something else than was recorded.' }),
    error: RunError.nullable(),
    createdAt: At,
    queuedAt: z.int().meta({
      description:
        'When the run entered the queue last; one with a delay, when it will enter: milliseconds since the Unix epoch.',
    }),
    claimedAt: At.nullable(),
    startedAt: At.nullable(),
    finishedAt: At.nullable(),
    deletedAt: At.nullable().meta({ description: 'When its input, output, error, tags and events were deleted.' }),
    computeMs: z.int().meta({
      description:
        'Milliseconds of execution, over all attempts. A lost one lacks what it had executed since it last waited.',
    }),
    tokens: z.object({ input: z.int(), output: z.int(), cachedInput: z.int(), reasoning: z.int() }),
    costMicros: z.int().meta({ description: 'Metered cost in micro-dollars.' }),
    budget: RunBudget.nullable().meta({ description: 'What its descriptor lets one run use. Null: no bound.' }),
  })
  .meta({ id: 'Run' })
export type Run = z.output<typeof Run>
