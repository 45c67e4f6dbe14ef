import { z } from 'zod'
import { RunId, Slug } from '../../ids.ts'
import { eachOnce } from '../../model/each-once.ts'
import { CHANNELS, Channel, DEFAULT_CHANNELS, RunEvent } from '../../model/event.ts'
import { RunFilter } from '../../model/job.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { Run, RUN_STATUSES } from '../../model/run.ts'
import { Why } from '../../model/why.ts'
import { bulkRuns } from './bulk.ts'
import type { Group } from '../group.ts'
import { keyFor } from '../idempotency-key.ts'
import { op } from '../op.ts'
import { starts } from './starts.ts'
import { values } from './values.ts'

export const group: Group = {
  command: 'What is executed: list, read, follow, explain, cancel, retry.',
  docs:
    'What is executed: start, read, follow, explain, cancel, retry. ' +
    'One execution of a workflow is one run, for good.',
}

const RunAnswer = z.object({ run: Run })

const Channels = z
  .array(Channel)
  .min(1)
  .max(CHANNELS.length)
  .default([...DEFAULT_CHANNELS])
  .meta({ description: '`agent` and `log` come only when asked for. In a query they are separated by commas.' })

const Since = z.int().min(0).default(0).meta({ description: 'Only events with a greater cursor.' })

export const rows = {
  ...starts,
  list: op({
    id: 'runs.list',
    method: 'GET',
    path: '/v1/orgs/{org}/runs',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'list_runs',
      when: 'To find runs, newest first, by status, workflow, tag or time. For one run whose id you know use get_run.',
    },
    summary: 'List the runs of an org, newest first.',
    input: z.strictObject({
      org: Slug,
      ...RunFilter,
      deleted: z
        .boolean()
        .default(false)
        .meta({ description: 'Only those that were deleted; else they are left out.' }),
      ...PageQuery,
    }),
    output: z.object({ runs: z.array(Run), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'runs.get',
    method: 'GET',
    path: '/v1/runs/{run}',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_run',
      when:
        'To read the status, error and totals of one run. For what it printed and returned use ' +
        'get_run_output; for why it does not go on, explain_run.',
    },
    summary: 'Get a run: status, timing, token and cost totals, error.',
    input: z.strictObject({ run: RunId }),
    output: RunAnswer,
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  ...values,
  events: op({
    id: 'runs.events',
    method: 'GET',
    path: '/v1/runs/{run}/events',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_run_output',
      when: [
        'To read or follow what a run did: status changes, phases and its output (get_run_result has a long one);',
        'ask for the channels `log` and `agent` to see what it printed. Pass the last `cursor` as `since` ' +
          'for what came',
        'after, and `waitMs` (up to 25000) to wait for it; `done` says that there is no more.',
      ].join(' '),
    },
    summary: 'Read the event log of a run from a cursor on.',
    input: z.strictObject({
      run: RunId,
      since: Since,
      channels: Channels,
      limit: z
        .int()
        .min(1)
        .max(1000)
        .default(500)
        .meta({ description: 'Events on a page at most; one with 4 MiB of data (of a tool: 256 KiB) ends before.' }),
      waitMs: z.int().min(0).max(25_000).default(0).meta({
        description:
          'Where there is no event yet, the answer waits so many milliseconds for one, or for the end of the run.',
      }),
    }),
    output: z.object({
      events: z.array(RunEvent),
      done: z
        .boolean()
        .meta({ description: 'True when the run has finished and this page reaches the end of its log.' }),
    }),
    faults: ['NOT_FOUND', 'RUN_DELETED'],
    success: 200,
  }),
  stream: op({
    id: 'runs.stream',
    method: 'GET',
    path: '/v1/runs/{run}/events/stream',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    command: 'logs',
    summary: 'Follow the event log of a run live, as Server-Sent Events.',
    input: z.strictObject({ run: RunId, since: Since, channels: Channels }),
    output: z.string(),
    faults: ['NOT_FOUND', 'RUN_DELETED'],
    success: 200,
    wire: 'sse',
  }),
  cancel: op({
    id: 'runs.cancel',
    method: 'POST',
    path: '/v1/runs/{run}/cancel',
    credentials: ['key', 'session'],
    scope: ['run:cancel'],
    role: 'member',
    stops: true,
    mcp: {
      tool: 'cancel_run',
      when:
        'To stop one run that has not finished; its unfinished work is lost. It needs the id of the run; ' +
        'a running one is `cancelling` until its processes are gone.',
      destructive: true,
      idempotent: true,
    },
    cli: { print: ['{run.id} is {run.status}'], note: ['Next: windlass logs -f {run.id} shows its end'] },
    summary: 'Ask a run to stop. One without a process ends at once, any other when its processes are gone.',
    input: z.strictObject({ run: RunId, reason: z.string().max(500).default('') }),
    output: RunAnswer,
    faults: ['NOT_FOUND', 'RUN_ALREADY_FINISHED'],
    success: 200,
  }),
  retry: op({
    id: 'runs.retry',
    method: 'POST',
    path: '/v1/runs/{run}/retry',
    credentials: ['key', 'session'],
    scope: ['run:trigger'],
    role: 'member',
    mcp: {
      tool: 'retry_run',
      when:
        'To run a workflow again with the input of an earlier run, for instance after a failure has been ' +
        'mended. It answers a new run with an id of its own; follow that with get_run_output.',
      openWorld: true,
    },
    summary: 'Start a new run with the same input and environment.',
    input: z.strictObject({
      run: RunId,
      version: z.int().min(1).optional().meta({ description: 'A version other than the current one.' }),
      idempotencyKey: keyFor('run'),
    }),
    output: RunAnswer,
    faults: ['NOT_FOUND', 'IDEMPOTENCY_CONFLICT', 'WORKFLOW_DISABLED', 'RUN_DELETED'],
    success: 201,
  }),
  delete: op({
    id: 'runs.delete',
    method: 'DELETE',
    path: '/v1/runs/{run}',
    credentials: ['key', 'session'],
    scope: ['run:delete'],
    role: 'admin',
    cli: { print: ['{run} is deleted: its state and times are all that is left'] },
    summary: 'Delete the input, output and events of a finished run. Its state, times and totals stay.',
    input: z.strictObject({ run: RunId }),
    output: z.object({}),
    faults: ['NOT_FOUND', 'RUN_NOT_FINISHED', 'RUN_HAS_LIVE_CHILDREN'],
    success: 204,
  }),
  children: op({
    id: 'runs.children',
    method: 'GET',
    path: '/v1/runs/{run}/children',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    summary: 'List the runs that a run has called, newest first.',
    input: z.strictObject({ run: RunId, status: eachOnce(RUN_STATUSES).optional(), ...PageQuery }),
    output: z.object({ runs: z.array(Run), nextCursor: NextCursor }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  why: op({
    id: 'runs.why',
    method: 'GET',
    path: '/v1/runs/{run}/why',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'explain_run',
      when:
        'To find out why a run does not start or go on: what it waits for, since when, and who could ' +
        'change that. Call it before you wait for long or cancel.',
    },
    summary:
      'Why a run that has not finished is where it is: what it waits for, since when, and who could change that.',
    input: z.strictObject({ run: RunId }),
    output: z.object({ why: Why }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  restart: op({
    id: 'runs.restart',
    method: 'POST',
    path: '/v1/runs/{run}/restart',
    credentials: ['key', 'session'],
    scope: ['run:trigger'],
    role: 'member',
    mcp: {
      tool: 'restart_run',
      when: [
        'To start a run again from the top when explain_run says that it is BLOCKED.',
        'What its earlier attempts have finished is taken over where the program asks for the same again',
        '(steps, answers, children), unless its `retries.onCrash` is `fresh`: then all is done anew.',
        'A run that has finished takes retry_run instead.',
      ].join(' '),
      destructive: true,
      openWorld: true,
    },
    cli: { print: ['{run.id} is {run.status}, attempt {run.attempt}'], note: ['Next: windlass logs -f {run.id}'] },
    summary: 'Start a blocked run again from the top, as its next attempt.',
    input: z.strictObject({ run: RunId }),
    output: RunAnswer,
    faults: ['NOT_FOUND', 'RUN_NOT_BLOCKED', 'WORKFLOW_DISABLED'],
    success: 200,
  }),
  ...bulkRuns,
}
