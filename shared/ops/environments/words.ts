import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE, PAGING } from '../example-things.ts'

const STAGING = { id: IDS.staging, org: 'acme', name: 'staging', createdAt: NINE - 20 * DAY_MS }

const PRODUCTION = { id: IDS.production, org: 'acme', name: 'production', createdAt: NINE - 20 * DAY_MS + 5000 }

export const environments: ExamplesOf<'environments'> = {
  list: {
    about: `The org itself, from which all of them inherit, is none of them. ${PAGING}`,
    input: { org: 'acme', limit: 20 },
    output: { environments: [PRODUCTION, STAGING], nextCursor: null },
  },
  create: {
    about:
      'It is empty at first and gives runs what the org has. A name that is taken is refused with ' +
      '`CONFLICT`. Next: `variables.set` and `secrets.set` with `environment`.',
    input: { org: 'acme', name: 'staging' },
    output: { environment: STAGING },
    fields: { name: 'Lower-case letters, digits and dashes; unique in the org.' },
  },
  delete: {
    about:
      'Its variables and secrets go with it and do not come back. One that holds secrets is refused to ' +
      'API keys with `FORBIDDEN`: use a session. While unfinished runs use it, it is refused with ' +
      '`ENVIRONMENT_IN_USE`.',
    input: { org: 'acme', environment: 'staging' },
    output: {},
  },
}
