import { isWellFormed } from '@windlass/shared/api-key.ts'
import type { KeyId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Sql } from '../db/client.ts'
import type { CredentialKind } from './credential-kind.ts'
import { digest, unauthenticated } from './secret.ts'
import * as store from './store.ts'

const MALFORMED = 'This is no API key of Windlass, or not all of it: one starts with `wl_` and has 49 characters.'

/** API keys: what programs and machines send. */
export function keyKind(deps: { db: Sql; log: Log }): CredentialKind {
  return {
    of: 'key',
    claims: (token) => token.startsWith('wl_'),
    flaw: (token) => (isWellFormed('wl_', token) ? undefined : MALFORMED),
    async find(token) {
      const row = await store.findByHash(deps.db, digest(token))
      assertServes(row)
      if (row.isStale) noteUse(deps, row.id)
      const { id, name, orgId, org, role, scopes } = row
      return { kind: 'key', id, name, orgId, org, role, scopes }
    },
    hold: async (tx, id) => assertServes(await store.holdKey(tx, id)),
  }
}

function assertServes<T extends store.KeyState>(row: T | undefined): asserts row is T {
  if (!row) throw unauthenticated('This API key is not known here.')
  if (row.isRevoked) throw unauthenticated('This API key has been revoked; ask an admin of the org for another.')
  if (row.isExpired) throw unauthenticated('This API key has expired; ask an admin of the org for another.')
}

/** Nobody waits for it: a note that is lost is written the next time. */
function noteUse({ db, log }: { db: Sql; log: Log }, id: KeyId): void {
  store.touchKey(db, id).catch((error: unknown) => log.warn('key.notTouched', { keyId: id, error }))
}
