import { z } from 'zod'
import { PoolId, Slug } from '../ids.ts'
import { Label } from './label.ts'

/** How runs are kept apart from each other and from their host; each one is stricter than those before it. */
export const ISOLATIONS = ['process', 'bubblewrap'] as const
export const Isolation = z.enum(ISOLATIONS).meta({
  description:
    '`process`: a process group of its own, in a cgroup where there are any. `bubblewrap`: its own view of the file system besides.',
})
export type Isolation = z.output<typeof Isolation>

/** What one run may use of its machine; null: no limit. */
export const RunLimits = z.strictObject({
  memoryMb: z.int().min(64).max(1_048_576).nullable().default(null).meta({ description: 'Memory in MiB.' }),
  cpus: z.number().min(0.05).max(1024).nullable().default(null).meta({ description: 'Cores; 0.5 is half of one.' }),
  processes: z.int().min(8).max(1_000_000).nullable().default(null).meta({ description: 'Processes and threads.' }),
  openFiles: z.int().min(64).max(1_048_576).nullable().default(null).meta({ description: 'Open files of a process.' }),
  diskMb: z.int().min(1).max(1_048_576).nullable().default(null).meta({
    description: 'What it may have in its workspace, in MiB; one that goes beyond is ended.',
  }),
})
export type RunLimits = z.output<typeof RunLimits>

const Milliseconds = (min: number, max: number) => z.int().min(min).max(max).nullable().default(null)

/**
 * What counts for all runners of a pool. They hear of a change with their next heartbeat. `slots`, `parkedMs` and `drainMs` are
 * defaults for machines that say nothing of their own; of limits the lower one counts, of isolations the stricter one.
 */
export const PoolSettings = z.strictObject({
  isolation: Isolation.default('process'),
  network: z.enum(['host', 'none']).default('host').meta({
    description: 'Whether runs see the network of their host. `none` needs `bubblewrap`.',
  }),
  reassignAfterMs: Milliseconds(60_000, 86_400_000).meta({
    description:
      'How long a runner may be silent before its runs are handed over. It stops them itself 25 s earlier. Null: as the service is set up, 75 s.',
  }),
  slots: z
    .int()
    .min(1)
    .max(1024)
    .nullable()
    .default(null)
    .meta({ description: 'Runs that execute at once on a machine.' }),
  labels: z
    .array(Label)
    .max(20)
    .default([])
    .meta({ description: 'Carried by every runner of the pool besides its own.' }),
  limits: RunLimits.prefault({}),
  parkedMs: Milliseconds(0, 2 ** 31 - 1).meta({
    description: 'How long the process of a run that only waits is kept.',
  }),
  drainMs: Milliseconds(0, 86_400_000).meta({
    description: 'How long a machine that is told to stop lets its runs go on. Null: as the machine is set up.',
  }),
})
export type PoolSettings = z.output<typeof PoolSettings>

export const RunnerPool = z
  .object({
    id: PoolId,
    org: Slug,
    name: Slug,
    settings: PoolSettings,
    runners: z.int(),
    queuedRuns: z.int(),
    createdAt: z.int(),
  })
  .meta({ id: 'RunnerPool' })
export type RunnerPool = z.output<typeof RunnerPool>

/** What autoscalers look at. */
export const PoolDemand = z
  .object({
    pool: z.object({ id: PoolId, name: Slug }),
    queuedRuns: z.int().meta({ description: 'Runs that could start now if a runner took them.' }),
    queuedSlots: z.int().meta({ description: 'Slots that they need together.' }),
    oldestQueuedAt: z.int().nullable().meta({ description: 'Since when the longest waiting one waits.' }),
    executingRuns: z.int(),
    usedSlots: z.int(),
    slots: z.int().meta({ description: 'Of runners that are online and take work.' }),
    freeSlots: z.int(),
    runners: z.object({ online: z.int(), takingWork: z.int(), draining: z.int(), offline: z.int() }),
    missingSlots: z.int().meta({ description: 'How many slots more it takes to start all that is queued.' }),
    byLabels: z
      .array(z.object({ labels: z.array(z.string()), queuedRuns: z.int(), queuedSlots: z.int(), freeSlots: z.int() }))
      .meta({ description: 'The same for each set of labels that queued runs ask for; 50 at most.' }),
  })
  .meta({ id: 'PoolDemand' })
export type PoolDemand = z.output<typeof PoolDemand>
