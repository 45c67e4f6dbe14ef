import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

const STAGING = { id: IDS.staging, org: 'acme', name: 'staging', createdAt: NINE - 20 * DAY_MS }
const PRODUCTION = { id: IDS.production, org: 'acme', name: 'production', createdAt: NINE - 20 * DAY_MS + 5000 }

const BANK_URL = {
  name: 'BANK_URL',
  value: 'https://bank.example/v2',
  environment: 'production',
  updatedAt: NINE - 540_000,
  updatedBy: IDS.session,
}

const BANK_TOKEN = { name: 'BANK_TOKEN', environment: 'production', updatedAt: NINE - 300_000, updatedBy: IDS.session }

const PAGING = 'Pages are joined by `nextCursor`: send it as `cursor` until it is null.'
const LEVELS =
  'What an environment sets goes before what the org sets. Within one level a name is a variable or a secret, never both.'

export const environments: ExamplesOf<'environments'> = {
  list: {
    about: `The org itself, from which all of them inherit, is none of them. ${PAGING}`,
    input: { org: 'acme', limit: 20 },
    output: { environments: [PRODUCTION, STAGING], nextCursor: null },
  },
  create: {
    about:
      'It is empty at first and gives runs what the org has. A name that is taken is refused with `CONFLICT`. Next: `variables.set` and `secrets.set` with `environment`.',
    input: { org: 'acme', name: 'staging' },
    output: { environment: STAGING },
    fields: { name: 'Lower-case letters, digits and dashes; unique in the org.' },
  },
  delete: {
    about:
      'Its variables and secrets go with it and do not come back. One that holds secrets is refused to API keys with `FORBIDDEN`: use a session. While unfinished runs use it, it is refused with `ENVIRONMENT_IN_USE`.',
    input: { org: 'acme', environment: 'staging' },
    output: {},
  },
}

export const variables: ExamplesOf<'variables'> = {
  list: {
    about: `Of one level: the org, or one environment without what it inherits. ${LEVELS} ${PAGING}`,
    input: { org: 'acme', environment: 'production', limit: 20 },
    output: { variables: [BANK_URL], nextCursor: null },
  },
  set: {
    about: `Makes it or replaces it; the same again changes nothing. Programs find it in \`process.env\`. A run keeps the variables that it had at its first start. ${LEVELS} A name that is a secret there is refused with \`CONFLICT\`.`,
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

export const secrets: ExamplesOf<'secrets'> = {
  list: {
    about: `Names only: no operation answers a value. ${PAGING}`,
    input: { org: 'acme', environment: 'production', limit: 20 },
    output: { secrets: [BANK_TOKEN], nextCursor: null },
  },
  set: {
    about: `Makes it or replaces it. The value is encrypted before it is stored, given to programs as \`process.env\`, and struck out of everything that a run logs or returns. ${LEVELS} API keys cannot do this: use a session.`,
    input: { org: 'acme', name: 'BANK_TOKEN', value: 'the-token-of-the-bank', environment: 'production' },
    output: { secret: BANK_TOKEN },
  },
  delete: {
    about:
      'Processes that start from now on do not get it; those that run keep what they were given. API keys cannot do this: use a session.',
    input: { org: 'acme', name: 'BANK_TOKEN', environment: 'production' },
    output: {},
    fields: { name: 'Name of the secret.' },
  },
}
