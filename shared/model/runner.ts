import { z } from 'zod'
import { PoolId, RunnerId, Slug } from '../ids.ts'

export const RunnerPool = z
  .object({ id: PoolId, org: Slug, name: Slug, runners: z.int(), queuedRuns: z.int(), createdAt: z.int() })
  .meta({ id: 'RunnerPool' })
export type RunnerPool = z.output<typeof RunnerPool>

export const RunnerStatus = z
  .enum(['online', 'offline'])
  .meta({ description: 'Online: polled or heard of within 60 s.' })

export const Runner = z
  .object({
    id: RunnerId,
    org: Slug,
    pool: z.object({ id: PoolId, name: Slug }),
    name: z.string(),
    status: RunnerStatus,
    labels: z.array(z.string()),
    slots: z.int(),
    activeRuns: z.int(),
    version: z.string(),
    platform: z.string(),
    createdAt: z.int(),
    lastPollAt: z.int().nullable(),
    lastHeartbeatAt: z.int().nullable(),
  })
  .meta({ id: 'Runner' })
export type Runner = z.output<typeof Runner>
