import type { ExamplesOf } from '../example.ts'
import { IDS, LEVELS, NINE, PAGING } from '../example-things.ts'

const BANK_URL = {
  name: 'BANK_URL',
  value: 'https://bank.example/v2',
  environment: 'production',
  updatedAt: NINE - 540_000,
  updatedBy: IDS.session,
}

export const variables: ExamplesOf<'variables'> = {
  list: {
    about: `Of one level: the org, or one environment without what it inherits. ${LEVELS} ${PAGING}`,
    input: { org: 'acme', environment: 'production', limit: 20 },
    output: { variables: [BANK_URL], nextCursor: null },
  },
  set: {
    about:
      'Makes it or replaces it; the same again changes nothing. Programs find it in `process.env`. A ' +
      `run keeps the variables that it had at its first start. ${LEVELS} A name that is a secret there is ` +
      'refused with `CONFLICT`.',
    input: { org: 'acme', name: 'BANK_URL', value: 'https://bank.example/v2', environment: 'production' },
    output: { variable: BANK_URL },
    fields: { value: 'Text of at most 64 KiB. Whoever may read the org can read it: secrets go to `secrets.set`.' },
  },
  delete: {
    about: 'Runs that have started keep it. What the org sets under the same name counts again.',
    input: { org: 'acme', name: 'BANK_URL', environment: 'production' },
    output: {},
    fields: { name: 'Name of the variable.' },
  },
}
