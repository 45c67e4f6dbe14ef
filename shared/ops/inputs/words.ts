import type { z } from 'zod'
import type { PendingInput } from '../../model/input.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const OPEN: z.input<typeof PendingInput> = {
  id: IDS.input,
  run: { id: IDS.run, workflow: { id: IDS.workflow, slug: 'approval' } },
  status: 'open',
  prompt: 'May Ada be paid 125.00 €?',
  schema: {
    type: 'object',
    properties: { approve: { type: 'boolean' }, note: { type: 'string' } },
    required: ['approve'],
    additionalProperties: false,
  },
  createdAt: NINE + 2100,
  dueAt: NINE + 2 * DAY_MS,
  closedAt: null,
  answeredBy: null,
}

const ANSWERED: z.input<typeof PendingInput> = {
  ...OPEN,
  status: 'answered',
  closedAt: NINE + 300_000,
  answer: { approve: true },
  answeredBy: IDS.ownerKey,
}

export const inputs: ExamplesOf<'inputs'> = {
  list: {
    about: 'Pages are joined by `nextCursor`. Next: `inputs.respond` with the id of the question.',
    input: { org: 'acme', status: ['open'], limit: 20 },
    output: { inputs: [OPEN], nextCursor: null },
    fields: { status: 'Comma-separated; any of these.', run: 'Questions of this run only.' },
  },
  get: {
    about: 'The answer that it takes is described by `schema`; null takes any JSON.',
    input: { input: IDS.input },
    output: { input: ANSWERED },
  },
  respond: {
    about:
      'The answer is checked against the schema of the question: a misfit is refused with its path, as in ' +
      '`answer.approve`, and the question stays open. The first answer counts and the run goes on with ' +
      'it; whoever comes later gets `INPUT_CLOSED` with who answered and when.',
    input: { input: IDS.input, answer: { approve: true } },
    output: { input: ANSWERED },
  },
}
