import { LRUCache } from 'lru-cache'
import type { Log } from '@windlass/shared/log.ts'
import type { Caller } from '../actor.ts'
import type { Sql, Tx } from '../db/client.ts'
import { credentialKinds } from './credential-kinds.ts'
import { digest, unauthenticated } from './secret.ts'

/** How long a credential that has been revoked elsewhere, or has expired, may still serve. */
const CACHE_MS = 1000

/** Far more credentials than are in use within a second; what is over it is looked up again. */
const CACHE_SIZE = 10_000

export interface Callers {
  /** Who holds a credential. At most one look-up a second and credential, however many requests come with it. */
  verify(this: void, token: string): Promise<Caller>
  /** Whether a credential has served, or is being looked up. Kept for far longer than it serves without a look-up. */
  knows(this: void, token: string): boolean
  /**
   * What is made in the transaction is there when its author is revoked, which waits for it. Throws UNAUTHENTICATED
   * when the credential serves no more: up to a second ago it may have been revoked elsewhere.
   */
  hold(this: void, tx: Tx, caller: Pick<Caller, 'kind' | 'id'>): Promise<void>
  /** A credential was revoked: it serves no later request to this process. */
  forget(id: string): void
}

interface Known {
  caller: Promise<Caller>
  /** Undefined while it is being looked up. */
  id: string | undefined
  until: number
}

/** `now`: by which a look-up grows old. */
export function createCallers(deps: { db: Sql; log: Log; now?: () => number }): Callers {
  const now = deps.now ?? (() => performance.now())
  const kinds = credentialKinds(deps)
  // By hash, so that no credential lies in memory for longer than its request.
  const cache = new LRUCache<string, Known>({ max: CACHE_SIZE })

  return {
    verify(token) {
      const kind = kinds.find((one) => one.claims(token))
      const flaw = kind ? kind.flaw(token) : UNKNOWN_KIND
      if (!kind || flaw !== undefined) return Promise.reject(unauthenticated(flaw ?? UNKNOWN_KIND))
      const name = nameOf(token)
      const known = cache.get(name)
      if (known && known.until > now()) return known.caller
      return keep(name, kind.find(token))
    },
    knows: (token) => cache.has(nameOf(token)),
    hold: (tx, { kind, id }) => kinds.find((one) => one.of === kind)!.hold(tx, id),
    forget(id) {
      // What is being looked up may have been read before it was revoked.
      for (const [name, known] of cache.entries()) if (known.id === undefined || known.id === id) cache.delete(name)
    },
  }

  function keep(name: string, caller: Promise<Caller>): Promise<Caller> {
    const known: Known = { caller, id: undefined, until: now() + CACHE_MS }
    cache.set(name, known)
    caller.then(
      ({ id }) => (known.id = id),
      // A refusal is not kept: nothing is to be gained by it, and a stranger's guesses would drive the good ones out.
      () => cache.peek(name) === known && cache.delete(name),
    )
    return caller
  }
}

const nameOf = (token: string) => digest(token).toString('latin1')

const UNKNOWN_KIND =
  'This is no credential of Windlass: an API key starts with `wl_`, a session with `wls_`. Send it as `Authorization: Bearer <credential>`.'
