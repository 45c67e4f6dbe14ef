import type { ExamplesOf } from '../example.ts'
import { ACME } from '../example-things.ts'

export const orgs: ExamplesOf<'orgs'> = {
  get: {
    about: 'An org that the credential does not belong to looks absent: 404.',
    input: { org: 'acme' },
    output: { org: ACME },
  },
}
