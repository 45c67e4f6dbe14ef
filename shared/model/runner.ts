import { z } from 'zod'
import { PoolId, RunId, RunnerId, Slug } from '../ids.ts'
import { Isolation } from './pool.ts'
import { RunStatus } from './run.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

export const RunnerStatus = z
  .enum(['online', 'offline'])
  .meta({ description: 'Online: polled or heard of within 60 s.' })

/** `drained` is `draining` with nothing live left. */
export const IntakeState = z.enum(['open', 'cordoned', 'draining', 'drained', 'revoked'])
export type IntakeState = z.output<typeof IntakeState>

export const OnDeadline = z
  .enum(['cancel', 'leave'])
  .meta({ description: 'Of what still executes at the deadline: `cancel` it, or `leave` it to its end.' })
export type OnDeadline = z.output<typeof OnDeadline>

/** Whether a runner is given work. Every change raises the epoch; no claim commits at or after an epoch that closed it. */
export const Intake = z.object({
  state: IntakeState,
  epoch: z.int().meta({ description: 'Raised by each change. What is given out afterwards was allowed by it.' }),
  since: At,
  by: z
    .object({ kind: z.enum(['caller', 'agent', 'system']), name: z.string() })
    .nullable()
    .meta({ description: 'Who changed it: a person or key, the agent itself as it stops, or the coordinator.' }),
  reason: z.string(),
  deadlineAt: At.nullable().meta({ description: 'Of a drain.' }),
  onDeadline: OnDeadline.nullable().meta({
    description: 'What happens to runs that still execute then: they are cancelled, or left to end.',
  }),
})
export type Intake = z.output<typeof Intake>

/** What is really in force for the runs of a machine, whatever was asked for. */
export const EffectiveIsolation = z.object({
  level: Isolation,
  user: z.enum(['own', 'agent']).meta({
    description:
      '`own`: runs execute as users of their own. `agent`: as the user of the agent, whose files they could read.',
  }),
  cgroup: z.boolean().meta({ description: 'Whether memory, CPU and processes are limited and counted by a cgroup.' }),
  network: z.enum(['host', 'none']),
})
export type EffectiveIsolation = z.output<typeof EffectiveIsolation>

/** Something on the machine that keeps it from taking work. */
export const Unready = z.object({
  check: z.string().meta({ examples: ['disk', 'inodes', 'sandbox', 'bundles', 'pre-claim'] }),
  message: z.string(),
})
export type Unready = z.output<typeof Unready>

export const Runner = z
  .object({
    id: RunnerId,
    org: Slug,
    pool: z.object({ id: PoolId, name: Slug }),
    name: z.string(),
    status: RunnerStatus,
    intake: Intake,
    quarantine: z
      .object({ since: At, until: At, reason: z.string() })
      .nullable()
      .meta({ description: 'Set while it gets no work because preparing runs failed there again and again.' }),
    unready: z.array(Unready).meta({ description: 'What the machine itself says is in the way; empty: nothing.' }),
    labels: z.array(z.string()).meta({ description: 'Its own and those of its pool.' }),
    slots: z.int(),
    activeRuns: z.int(),
    live: z
      .object({ offered: z.int(), executing: z.int(), parked: z.int() })
      .meta({ description: 'What it has. A drain is over when all three are 0.' }),
    currentRuns: z.array(RunId).meta({ description: 'The first 20 of what it has.' }),
    version: z.string(),
    protocol: z.int(),
    upgrade: z
      .object({ message: z.string(), command: z.string() })
      .nullable()
      .meta({ description: 'Set when the agent is older than the service; the command installs the right one.' }),
    platform: z.string(),
    isolation: EffectiveIsolation.nullable().meta({ description: 'Null until the agent has said it.' }),
    createdAt: At,
    lastPollAt: At.nullable(),
    lastHeartbeatAt: At.nullable(),
    copyRefusedAt: At.nullable().meta({ description: 'When a copy of its state folder last tried to pass for it.' }),
  })
  .meta({ id: 'Runner' })
export type Runner = z.output<typeof Runner>

/** What a drain would meet, or what it still waits for. */
export const DrainPlan = z
  .object({
    runner: RunnerId,
    epoch: z.int(),
    live: z.array(
      z.object({
        run: RunId,
        workflow: z.string(),
        status: RunStatus,
        since: At.nullable(),
        outcome: z.enum(['finishes', 'moves', 'returns-to-queue']).meta({
          description:
            '`finishes`: it executes to its end here. `moves`: it only waits, and goes on elsewhere. `returns-to-queue`: it was offered and has not begun.',
        }),
        latestEndAt: At.nullable().meta({ description: 'When its own timeout ends it at the latest.' }),
      }),
    ),
    othersTakeWork: z.int().meta({ description: 'Other runners of the pool that are online and take work.' }),
    queuedRuns: z.int().meta({ description: 'What waits in the pool.' }),
    warnings: z.array(z.string()),
  })
  .meta({ id: 'DrainPlan' })
export type DrainPlan = z.output<typeof DrainPlan>
