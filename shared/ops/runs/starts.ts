import { z } from 'zod'
import { EnvironmentRef, Slug, WorkflowRef } from '../../ids.ts'
import { Run } from '../../model/run.ts'
import { keyFor } from '../idempotency-key.ts'
import { op } from '../op.ts'

const Merged = z.int().min(1).meta({
  description:
    'The call was merged into this run, which waits for further ones: it is the so many-th. Answered with 200.',
})

/** What a run is started with. */
const Start = {
  input: z.unknown().optional().meta({ description: 'Any JSON value; becomes the first parameter of `run`.' }),
  environment: EnvironmentRef.nullable().optional().meta({
    description: 'Whose variables and secrets it gets; left out or null: those of the org.',
  }),
  tags: z.array(z.string().min(1).max(64)).max(20).default([]),
  priority: z.int().min(-100).max(100).default(0).meta({ description: 'Higher goes first.' }),
  version: z.int().min(1).optional().meta({ description: 'A version other than the current one.' }),
  delayMs: z
    .int()
    .min(0)
    .max(366 * 86_400_000)
    .default(0)
    .meta({ description: 'The run enters the queue so many milliseconds from now.' }),
  idempotencyKey: keyFor('run'),
}

const MOST_ITEMS = 1000

const Refusal = z.object({
  code: z.string(),
  message: z.string(),
  detail: z.record(z.string(), z.unknown()).optional(),
})

/** The rows of `runs` that start some. */
export const starts = {
  trigger: op({
    id: 'runs.trigger',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/runs',
    credentials: ['key', 'session'],
    scope: ['run:trigger', 'workflow:trigger'],
    role: 'member',
    mcp: {
      tool: 'trigger_now',
      when: [
        'To run a workflow once, now. It answers at once with a queued run; follow that with get_run_output and',
        '`waitMs` until `done`. The input must fit the workflow: get_workflow shows its schema.',
      ].join(' '),
      openWorld: true,
    },
    command: 'run',
    summary: 'Start a run. It is queued and executes asynchronously.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      ...Start,
    }),
    output: z.object({ run: Run, merged: Merged.optional() }),
    faults: ['NOT_FOUND', 'PAYLOAD_TOO_LARGE', 'IDEMPOTENCY_CONFLICT', 'WORKFLOW_DISABLED'],
    success: 201,
    carries: 'input',
  }),
  batch: op({
    id: 'runs.batch',
    method: 'POST',
    path: '/v1/orgs/{org}/workflows/{workflow}/runs/batch',
    credentials: ['key', 'session'],
    scope: ['run:trigger', 'workflow:trigger'],
    role: 'member',
    cli: {
      table: { columns: { RUN: 'run.id', STATUS: 'run.status', REFUSED: '{error.code}: {error.message}' } },
    },
    summary: 'Start many runs of a workflow, each with a result of its own.',
    input: z.strictObject({
      org: Slug,
      workflow: WorkflowRef,
      items: z.array(z.strictObject(Start)).min(1).max(MOST_ITEMS),
    }),
    output: z.object({
      results: z.array(z.union([z.object({ run: Run, merged: Merged.optional() }), z.object({ error: Refusal })])),
    }),
    faults: ['NOT_FOUND', 'WORKFLOW_DISABLED', 'PAYLOAD_TOO_LARGE'],
    success: 200,
    carries: 'batch',
  }),
}
