import type { ExamplesOf } from '../example.ts'
import { ACME, IDS } from '../example-things.ts'

export const account: ExamplesOf<'account'> = {
  get: {
    about: 'Any credential that serves may ask this, whatever its scopes: the way to try one out.',
    input: {},
    output: {
      me: {
        credential: { kind: 'key', id: IDS.ciKey, name: 'ci', role: 'member', scopes: ['run:trigger', 'run:read'] },
        org: ACME,
      },
    },
  },
}
