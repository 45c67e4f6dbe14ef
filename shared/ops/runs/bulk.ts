import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { BulkFilter, Job } from '../../model/job.ts'
import { IdempotencyKey } from '../idempotency-key.ts'
import { op } from '../op.ts'

const JobAnswer = z.object({ job: Job })

const DryRun = z.boolean().default(false).meta({
  description: 'The job only counts in `matched` what it would be done to.',
})

/** Rows of the group `runs`. */
export const bulkRuns = {
  bulkCancel: op({
    id: 'runs.bulkCancel',
    method: 'POST',
    path: '/v1/orgs/{org}/runs/bulk-cancel',
    credentials: ['key', 'session'],
    scope: ['run:cancel'],
    role: 'member',
    stops: true,
    summary: 'Ask all unfinished runs that a filter finds to stop, as a job.',
    input: z.strictObject({
      org: Slug,
      filter: BulkFilter,
      reason: z.string().max(500).default(''),
      dryRun: DryRun,
    }),
    output: JobAnswer,
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 202,
  }),
  bulkRetry: op({
    id: 'runs.bulkRetry',
    method: 'POST',
    path: '/v1/orgs/{org}/runs/bulk-retry',
    credentials: ['key', 'session'],
    scope: ['run:trigger'],
    role: 'member',
    summary: 'Retry all finished runs that a filter finds and that no other run has called, as a job.',
    input: z.strictObject({
      org: Slug,
      filter: BulkFilter,
      dryRun: DryRun,
      idempotencyKey: IdempotencyKey.meta({
        description: 'Also the header `Idempotency-Key`. The same key and request answer the first job with 200.',
      }),
    }),
    output: JobAnswer,
    faults: ['NOT_FOUND', 'CONFLICT', 'IDEMPOTENCY_CONFLICT'],
    success: 202,
  }),
}
