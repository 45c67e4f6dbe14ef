import { z } from 'zod'
import { EnvironmentRef, JobId, Slug, WorkflowRef } from '../ids.ts'
import { eachOnce } from './each-once.ts'
import { RUN_STATUSES, TriggerFilter } from './run.ts'

/** What leads to runs, in lists and in jobs. */
export const RunFilter = {
  status: eachOnce(RUN_STATUSES).optional(),
  workflow: WorkflowRef.optional().meta({ description: 'Only those of this workflow: its slug or id.' }),
  environment: EnvironmentRef.optional().meta({ description: 'Only those of this environment: its name or id.' }),
  trigger: TriggerFilter.optional().meta({
    description:
      'Only those that were started so (api, mcp, schedule, webhook, connection, child, retry), or by this id.',
  }),
  tag: z.string().min(1).max(64).optional(),
  blocked: z.boolean().optional(),
  createdAfter: z.int().optional(),
  createdBefore: z.int().optional(),
}

export const BulkFilter = z
  .strictObject({
    ...RunFilter,
    all: z
      .boolean()
      .optional()
      .meta({ description: 'Wanted where no other member is given: all runs of the org are meant.' }),
  })
  .meta({
    description: 'As in the list of runs, joined by "and"; at least one member, or `all`.',
  })
export type BulkFilter = z.output<typeof BulkFilter>

export const JobKind = z.enum(['bulk-cancel', 'bulk-retry', 'workflow-delete'])
export type JobKind = z.output<typeof JobKind>

export const JobStatus = z.enum(['running', 'completed', 'cancelled', 'failed'])
export type JobStatus = z.output<typeof JobStatus>

export const Job = z
  .object({
    id: JobId,
    org: Slug,
    kind: JobKind.meta({ description: 'What is done to the runs. `workflow-delete`: they are cancelled.' }),
    filter: BulkFilter,
    dryRun: z.boolean().meta({ description: 'Runs are counted in `matched`, and nothing is done to them.' }),
    status: JobStatus.meta({
      description:
        '`failed`: it was not done in time; `cancelled`: by somebody, or with the key that had asked for it.',
    }),
    error: z.string().nullable().meta({ description: 'Why it was not done, unless somebody has cancelled it.' }),
    matched: z.int().meta({ description: 'Runs that were found; it grows at first.' }),
    done: z.int(),
    failed: z.int().meta({ description: 'Runs to which it could not be done.' }),
    failures: z.record(z.string(), z.int()).meta({ description: 'How many of them for which reason, by its code.' }),
    createdAt: z.int(),
    deadlineAt: z.int().meta({ description: 'A job that is not done by then ends as `failed`.' }),
    finishedAt: z.int().nullable(),
  })
  .meta({ id: 'Job' })
export type Job = z.output<typeof Job>
