import { generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { calculateJwkThumbprint, type CryptoKey, importJWK } from 'jose'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import * as store from './store-token-keys.ts'

/**
 * The keys of run tokens. Each coordinator signs with one of its own, which stays in its memory; the
 * database holds the public halves only. A start makes a new one, and so does each day.
 */
export interface TokenKeys {
  /** Rejects when this coordinator's key is no longer known to the others, and no other can be told now. */
  signing(): Promise<SigningKey>
  /** Resolves with undefined when no coordinator of this installation has signed with the key for two days. */
  verifying(kid: string): Promise<Key | undefined>
}

type Key = CryptoKey | Uint8Array
type PublicKey = Awaited<ReturnType<typeof store.publicKeys>>[number]

interface SigningKey {
  /** RFC 7638 thumbprint of the public half. */
  kid: string
  key: KeyObject
}

export interface TokenKeysDeps {
  db: Db
  log: Log
  /** Clock by which keys grow old, in milliseconds. It goes on while the machine sleeps, as the database's does. */
  now?: () => number
}

const DAY_MS = 24 * 60 * 60 * 1000
/** Time after which a new key signs. */
const SIGNS_MS = DAY_MS
/** Time for which a key is known: a day more than it signs, should the database be away when the next one is due. */
const KNOWN_MS = 2 * DAY_MS
/** Pause before the next try when a new key could not be stored. */
const AGAIN_MS = 60_000
/** A row that is deleted by hand shuts the key out after this. */
const FRESH_MS = 60_000
/** All keys are read at once, and so often at most: foreign tokens do not become queries. */
const READ_AGAIN_MS = 250

export async function openTokenKeys({ db, log, now = () => Date.now() }: TokenKeysDeps): Promise<TokenKeys> {
  let current = await next()
  let dueAt = current.since + SIGNS_MS
  let renewing: Promise<void> | undefined

  async function next() {
    const since = now()
    return { ...(await publishNew(db)), since }
  }

  function renew(): Promise<void> {
    return (renewing ??= replace().finally(() => (renewing = undefined)))
  }

  async function replace(): Promise<void> {
    // The previous key signs until then.
    dueAt = now() + AGAIN_MS
    current = await next()
    dueAt = current.since + SIGNS_MS
    log('tokenKey.renewed', { kid: current.kid })
  }

  function renewSoon(): void {
    renew().catch((error: unknown) => log.warn('tokenKey.notRenewed', { error, againInMs: AGAIN_MS }))
  }

  async function readKeys(): Promise<PublicKey[]> {
    const { kid } = current
    const rows = await store.publicKeys(db)
    if (!rows.some((row) => row.kid === kid)) renewSoon()
    return rows
  }

  return {
    async signing() {
      // The machine has slept, and the others no longer know this key: its tokens would be refused.
      if (now() >= current.since + KNOWN_MS) await renew()
      else if (now() >= dueAt) renewSoon()
      return current
    },
    verifying: readTogether(readKeys),
  }
}

/** Resolves when the row is committed: no token names a key that the others cannot find. */
async function publishNew(db: Db): Promise<SigningKey> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('ed25519')
  const jwk = publicKey.export({ format: 'jwk' })
  const kid = await calculateJwkThumbprint(jwk)
  await store.publish(db, kid, jwk, KNOWN_MS)
  return { kid, key: privateKey }
}

/** Answers by what was read last; a key that is not among it waits for the next look, with all who ask meanwhile. */
function readTogether(readKeys: () => Promise<PublicKey[]>): (kid: string) => Promise<Key | undefined> {
  let keys = new Map<string, Key>()
  let beganAt = -Infinity
  let next: Promise<void> | undefined

  async function read(): Promise<void> {
    await pause(Math.max(0, beganAt + READ_AGAIN_MS - performance.now()))
    // A question from here on may be about a key that this query does not find.
    next = undefined
    beganAt = performance.now()
    const rows = await readKeys()
    probe('tokenKeys.read', { keys: rows.length })
    const entries = rows.map(async ({ kid, publicJwk }) => [kid, await importJWK(publicJwk, 'EdDSA')] as const)
    keys = new Map(await Promise.all(entries))
  }

  return async (kid) => {
    if (!keys.has(kid) || performance.now() - beganAt > FRESH_MS) await (next ??= read())
    return keys.get(kid)
  }
}

export async function cleanTokenKeys({ db }: { db: Db }): Promise<number> {
  return store.removeExpired(db)
}
