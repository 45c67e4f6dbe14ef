import type { ExamplesOf } from '../example.ts'
import { IDS, LEVELS, NINE, PAGING } from '../example-things.ts'

const BANK_TOKEN = { name: 'BANK_TOKEN', environment: 'production', updatedAt: NINE - 300_000, updatedBy: IDS.session }

export const secrets: ExamplesOf<'secrets'> = {
  list: {
    about: `Names only: no operation answers a value. ${PAGING}`,
    input: { org: 'acme', environment: 'production', limit: 20 },
    output: { secrets: [BANK_TOKEN], nextCursor: null },
  },
  set: {
    about:
      'Makes it or replaces it. The value is encrypted before it is stored, given to programs as ' +
      `\`process.env\`, and struck out of everything that a run logs or returns. ${LEVELS} API keys ` +
      'cannot do this: use a session.',
    input: { org: 'acme', name: 'BANK_TOKEN', value: 'the-token-of-the-bank', environment: 'production' },
    output: { secret: BANK_TOKEN },
  },
  delete: {
    about:
      'Processes that start from now on do not get it; those that run keep what they were given. API keys ' +
      'cannot do this: use a session.',
    input: { org: 'acme', name: 'BANK_TOKEN', environment: 'production' },
    output: {},
    fields: { name: 'Name of the secret.' },
  },
}
