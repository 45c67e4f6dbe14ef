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
    summary: 'Stop a job. What it has done to runs stays done.',
    input: z.strictObject({ job: JobId }),
    output: z.object({ job: Job }),
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 200,
  }),
}
