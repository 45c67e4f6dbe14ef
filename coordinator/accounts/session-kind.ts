import { isWellFormed } from '@windlass/shared/api-key.ts'
import type { Sql } from '../db/client.ts'
import type { CredentialKind } from './credential-kind.ts'
import { digest, unauthenticated } from './secret.ts'
import * as store from './store-sessions.ts'

const MALFORMED = 'This is no session of Windlass, or not all of it: one starts with `wls_` and has 50 characters.'
const ANOTHER = '`windlass admin sessions create` on the host of the coordinator makes another.'

/** Sessions that an operator made on the coordinator's host: they open what keys may not do. */
export function sessionKind({ db }: { db: Sql }): CredentialKind {
  return {
    of: 'session',
    claims: (token) => token.startsWith('wls_'),
    flaw: (token) => (isWellFormed('wls_', token) ? undefined : MALFORMED),
    async find(token) {
      const row = await store.findByHash(db, digest(token))
      assertServes(row)
      const { id, name, orgId, org, role } = row
      return { kind: 'session', id, name, orgId, org, role, scopes: [] }
    },
    hold: async (tx, id) => assertServes(await store.hold(tx, id)),
  }
}

function assertServes<T extends store.SessionState>(row: T | undefined): asserts row is T {
  if (!row) throw unauthenticated('This session is not known here.')
  if (row.isRevoked) throw unauthenticated(`This session has been revoked; ${ANOTHER}`)
  if (row.isExpired) throw unauthenticated(`This session has expired; ${ANOTHER}`)
}
