import type { z } from 'zod'
import type { Retention } from '../../model/retention.ts'
import type { ExamplesOf } from '../example.ts'
import { NINE } from '../example-things.ts'

const RETENTION: z.input<typeof Retention> = {
  runsDays: 90,
  deliveriesDays: null,
  maxRunsDays: null,
  maxDeliveriesDays: 365,
  actsAt: NINE + 3_600_000,
}

export const retention: ExamplesOf<'retention'> = {
  get: {
    about:
      'The lower one of what the org says and what the service keeps counts. By default neither says anything, ' +
      'and all is kept.',
    input: { org: 'acme' },
    output: { retention: RETENTION },
  },
  update: {
    about:
      'What is left out stays. It acts an hour after the change, then each hour. What it deletes does not come ' +
      'back. More days than the service keeps are refused.',
    input: { org: 'acme', runsDays: 90 },
    output: { retention: RETENTION },
  },
}
