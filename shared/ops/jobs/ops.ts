import { z } from 'zod'
import { JobId, Slug } from '../../ids.ts'
import { Job, JobStatus } from '../../model/job.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'What is done to many runs at once.',
  docs: 'What is done to many runs at once: how far it is, and how to stop it.',
}

export const rows = {
  list: op({
    id: 'jobs.list',
    method: 'GET',
    path: '/v1/orgs/{org}/jobs',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'member',
    cli: {
      table: {
        columns: {
          JOB: 'id',
          KIND: 'kind',
          STATUS: 'status',
          DONE: '{done} of {matched}',
          FAILED: 'failed',
          'CREATED?': 'createdAt',
          'DRY RUN?': 'dryRun',
        },
        none: 'No jobs. Next: windlass runs bulk-cancel --status queued --dry-run',
      },
    },
    summary: 'List what is, or was, done to many runs at once, newest first.',
    input: z.strictObject({ org: Slug, status: JobStatus.optional(), ...PageQuery }),
    output: z.object({ jobs: z.array(Job), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'jobs.get',
    method: 'GET',
    path: '/v1/jobs/{job}',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'member',
    cli: {
      fields: {
        job: 'job.id',
        kind: 'job.kind',
        'dry run': 'job.dryRun',
        filter: 'job.filter',
        status: 'job.status',
        error: 'job.error',
        done: '{job.done} of {job.matched}, {job.failed} failed',
        failures: 'job.failures',
        created: 'job.createdAt',
        finished: 'job.finishedAt',
      },
    },
    summary: 'Get a job: how far it is, and what it could not do.',
    input: z.strictObject({ job: JobId }),
    output: z.object({ job: Job }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  cancel: op({
    id: 'jobs.cancel',
    method: 'POST',
    path: '/v1/jobs/{job}/cancel',
    credentials: ['key', 'session'],
    scope: ['run:cancel'],
    role: 'member',
    stops: true,
    cli: {
      print: ['{job.id} is {job.status}: {job.done} of {job.matched}, {job.failed} failed'],
    },
    summary: 'Stop a job. What it has done to runs stays done.',
    input: z.strictObject({ job: JobId }),
    output: z.object({ job: Job }),
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 200,
  }),
}
