import { hash } from 'node:crypto'
import { SHOWN_LENGTH, isWellFormed, mintSecret } from '@windlass/shared/api-key.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { type KeyId, type OrgId, newId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import type { Caller } from '../actor.ts'
import type { Sql } from '../db/client.ts'
import * as store from './store.ts'

/** How long a key that has been revoked or has expired may still serve. */
const CACHE_MS = 1000

const MALFORMED = 'This is no API key of Windlass, or not all of it: one starts with `wl_` and has 49 characters.'

/** Far more keys than are in use within a second; what is over it is looked up again. */
const CACHE_SIZE = 10_000

export interface MintedKey {
  id: KeyId
  /** The whole key. It is not stored, so this is the only time it can be shown. */
  key: string
}

/** Makes a key. An empty list of scopes allows whatever the role allows. */
export async function mintApiKey(
  sql: Sql,
  { orgId, name, role, scopes = [] }: { orgId: OrgId; name: string; role: Role; scopes?: readonly Scope[] },
): Promise<MintedKey> {
  const key = mintSecret('wl_')
  const id = newId('key')
  await store.insertKey(sql, { id, orgId, hash: digest(key), prefix: key.slice(0, SHOWN_LENGTH), name, role, scopes })
  return { id, key }
}

/** Finds out who holds a key. At most one statement a second and key, however many requests come with it. */
export function callerVerifier(deps: { db: Sql; log: Log }): (bearer: string) => Promise<Caller> {
  const cache = new Map<string, { caller: Promise<Caller>; until: number }>()
  return (bearer) => {
    const known = cache.get(bearer)
    const now = performance.now()
    if (known && known.until > now) return known.caller
    if (!isWellFormed('wl_', bearer)) return Promise.reject(refused(MALFORMED))
    const caller = lookUp(deps, bearer)
    cache.delete(bearer)
    // The first that was put in is the oldest.
    if (cache.size >= CACHE_SIZE) cache.delete(cache.keys().next().value ?? '')
    cache.set(bearer, { caller, until: now + CACHE_MS })
    // A refusal is not kept: nothing is to be gained by it, and a stranger's guesses would drive the good keys out.
    caller.catch(() => cache.delete(bearer))
    return caller
  }
}

async function lookUp(deps: { db: Sql; log: Log }, bearer: string): Promise<Caller> {
  const row = await store.findByHash(deps.db, digest(bearer))
  if (!row) throw refused('This API key is not known here.')
  if (row.isRevoked) throw refused('This API key has been revoked; ask an admin of the org for another.')
  if (row.isExpired) throw refused('This API key has expired; ask an admin of the org for another.')
  if (row.isStale) noteUse(deps, row.id)
  return { kind: 'key', id: row.id, name: row.name, orgId: row.orgId, org: row.org, role: row.role, scopes: row.scopes }
}

/** Nobody waits for it: a note that is lost is written the next time. */
function noteUse({ db, log }: { db: Sql; log: Log }, id: KeyId): void {
  store.touchKey(db, id).catch((error: unknown) => log.warn('key.notTouched', { keyId: id, error }))
}

function refused(message: string): Fault {
  return new Fault('UNAUTHENTICATED', undefined, message)
}

/** The random part has 238 bits: nothing slower than one SHA-256 is needed to keep it from being guessed. */
function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}
