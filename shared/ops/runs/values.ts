import { z } from 'zod'
import { RunId } from '../../ids.ts'
import { Offset, Part } from '../../model/part.ts'
import { op } from '../op.ts'

const InParts = Offset.optional().meta({
  description: 'Given, the JSON text of the value is answered in parts, this one from so many characters on.',
})

/** What goes into a run, and what comes out of it. */
export const values = {
  input: op({
    id: 'runs.input',
    method: 'GET',
    path: '/v1/runs/{run}/input',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_run_input',
      when: 'To read the input of a run, for instance before retry_run. It takes `offset` as get_run_result does.',
    },
    cli: { json: 'input' },
    summary: 'Get the input that a run was called with.',
    input: z.strictObject({ run: RunId, offset: InParts }),
    output: z.object({ input: z.unknown(), part: Part.optional() }),
    faults: ['NOT_FOUND', 'RUN_DELETED'],
    success: 200,
  }),
  output: op({
    id: 'runs.output',
    method: 'GET',
    path: '/v1/runs/{run}/output',
    credentials: ['key', 'session'],
    scope: ['run:read'],
    role: 'viewer',
    mcp: {
      tool: 'get_run_result',
      when: [
        'To read the value that a run has returned, once it has completed. One that is shown cut comes whole with',
        '`offset`: 0 at first, then the `nextOffset` of each part until that is null; together the parts are JSON.',
        'One of very many values is answered with its first part.',
      ].join(' '),
    },
    cli: { json: 'output' },
    summary: 'Get the value that a run returned; null when it returned none.',
    input: z.strictObject({
      run: RunId,
      offset: InParts,
      refused: z.boolean().default(false).meta({
        description:
          'Instead of the output: what a run returned that failed with `OUTPUT_INVALID`, since it does not fit.',
      }),
    }),
    output: z.object({ output: z.unknown(), part: Part.optional() }),
    faults: ['NOT_FOUND', 'RUN_NOT_FINISHED', 'RUN_DELETED'],
    success: 200,
  }),
}
