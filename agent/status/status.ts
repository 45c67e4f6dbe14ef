import { z } from 'zod'
import { EffectiveIsolation, IntakeState, Unready } from '@windlass/shared/model/runner.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** What an agent writes down about itself, for whoever looks while it cannot be asked: `status.json` in its state folder. */
export const AgentStatus = z.object({
  at: At,
  state: z.enum(['working', 'stopping', 'stopped']),
  pid: z.int(),
  startedAt: At,
  instance: z.string().meta({ description: 'Names this start of the agent.' }),
  version: z.string(),
  runner: z.string(),
  org: z.string(),
  pool: z.string(),
  name: z.string(),
  url: z.string(),
  connection: z.object({ state: z.enum(['connecting', 'connected', 'refused']), since: At }),
  lastPollAt: At.nullable(),
  lastHeartbeatAt: At.nullable().meta({ description: 'When the last heartbeat was answered.' }),
  lastAckAt: At.nullable(),
  intake: z.object({
    state: IntakeState,
    epoch: z.int(),
    reason: z.string(),
    deadlineAt: At.nullable(),
    isLeaving: z.boolean().meta({ description: 'It is being stopped, and takes no more work until its next start.' }),
  }),
  unready: z.array(Unready),
  isolation: EffectiveIsolation.nullable(),
  labels: z.array(z.string()),
  capabilities: z.array(z.string()),
  slots: z.object({ total: z.int(), free: z.int() }),
  runs: z.array(
    z.object({ run: z.string(), attempt: z.int(), workflow: z.string(), since: At, isParked: z.boolean() }),
  ),
  spool: z.object({
    placements: z.int(),
    unacknowledged: z.int().meta({ description: 'Characters that the coordinator has not acknowledged.' }),
    trouble: z.string().nullable(),
  }),
  bundles: z.object({ count: z.int(), bytes: z.int() }),
  settings: z.array(z.object({ name: z.string(), value: z.unknown(), origin: z.string() })),
})
export type AgentStatus = z.output<typeof AgentStatus>

export const STATUS_FILE = 'status.json'
