import { z } from 'zod'
import { InputId, RunId, Slug } from '../../ids.ts'
import { eachOnce } from '../../model/each-once.ts'
import { INPUT_STATUSES, PendingInput } from '../../model/input.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'What runs ask people: list, answer.',
  docs: 'What runs ask people, and the answers.',
}

export const rows = {
  list: op({
    id: 'inputs.list',
    method: 'GET',
    path: '/v1/orgs/{org}/inputs',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'list_pending_inputs',
      when:
        'To see which runs wait for an answer: the prompt, the schema of the answer and the id that ' +
        'respond_to_input takes. Show the prompt to the person whose answer it is.',
    },
    summary: 'List the questions that runs ask, newest first; the open ones unless a status is named.',
    input: z.strictObject({
      org: Slug,
      status: eachOnce(INPUT_STATUSES).default(['open']),
      run: RunId.optional(),
      ...PageQuery,
    }),
    output: z.object({ inputs: z.array(PendingInput), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'inputs.get',
    method: 'GET',
    path: '/v1/inputs/{input}',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    cli: {
      fields: {
        input: 'input.id',
        run: 'input.run.id',
        workflow: 'input.run.workflow.slug',
        status: 'input.status',
        prompt: 'input.prompt',
        takes: '{input.schema|any}',
        asked: 'input.createdAt',
        until: 'input.dueAt',
        closed: 'input.closedAt',
        'answered by': 'input.answeredBy',
        answer: '{input.answer:json}',
      },
    },
    summary: 'Get a question: its prompt, the schema of its answer and, when it is answered, the answer.',
    input: z.strictObject({ input: InputId }),
    output: z.object({ input: PendingInput }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  respond: op({
    id: 'inputs.respond',
    method: 'POST',
    path: '/v1/inputs/{input}/respond',
    credentials: ['key', 'session'],
    // A key that may only start runs does not answer for people.
    scope: [],
    role: 'member',
    mcp: {
      tool: 'respond_to_input',
      when:
        'To answer the question of a run, which then continues. The first answer counts and cannot be ' +
        'taken back: give it only as the person has decided. It must fit the schema that ' +
        'list_pending_inputs shows.',
      openWorld: true,
    },
    summary: 'Answer a question. The first answer counts; the run continues with it.',
    input: z.strictObject({
      input: InputId,
      answer: z.unknown().meta({ description: 'Any JSON that fits the schema of the question.' }),
    }),
    output: z.object({ input: PendingInput }),
    faults: ['NOT_FOUND', 'INPUT_CLOSED', 'PAYLOAD_TOO_LARGE'],
    success: 200,
    carries: 'answer',
  }),
}
