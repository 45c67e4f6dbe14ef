import { LRUCache } from 'lru-cache'
import { importJWK, jwtVerify, decodeProtectedHeader, errors, type CryptoKey, type JWTPayload } from 'jose'
import { Fault } from '@windlass/shared/errors.ts'
import { AGENT_AUDIENCE, OTHER_KEY_REASON, REVOKED_REASON } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import * as store from './store-keys.ts'

/** Agents sign anew every 45 s. Whatever a token says of itself, it serves no longer than this. */
const LONGEST_LIFE_S = 70
/** Agents sign by our clock, which they learn from our answers; what is left is what the answers take. */
const TOLERANCE_S = 30
/** Less than the 5 s after which a revoked runner is out of every coordinator, also of one that misses the bell. */
const KEY_FRESH_MS = 3000
const MOST_RUNNERS = 5000
/** Anyone who knows the id of a runner can send tokens with a wrong signature; each would cost a query. */
const REREAD_MS = 1000
/** For this long after a wrong signature, only tokens that have served count as known. */
const SUSPECT_MS = 60_000

/**
 * Tells which installed agent signed a token. Its public key was given at registration; nothing else is stored here.
 */
export interface RunnerVerifier {
  verify(token: string): Promise<RunnerIdentity>
  /**
   * Returns whether the token has served, or names a known runner as which nobody has signed wrongly of late: agents
   * make new tokens time and again.
   */
  knows(token: string): boolean
  /** Something about this runner has changed: it is looked at again. */
  forget(id: string): void
}

interface Key {
  x: string
  key: CryptoKey | Uint8Array
}

interface Known {
  at: number
  isRevoked: boolean
  runner: Omit<RunnerIdentity, 'signedWith'>
  present: Key
  former: Key | undefined
}

interface Seen {
  id: string
  signedWith: string
  expiresAt: number
}

export function createRunnerVerifier(db: Db): RunnerVerifier {
  const { runners, known, forget } = keepRunners(db)
  const tokens = new LRUCache<string, Seen>({ max: MOST_RUNNERS })

  /** Time at which each runner was read anew for a signature that was wrong after all. */
  const suspects = new LRUCache<string, number>({ max: MOST_RUNNERS })

  function isSuspect(id: string, ms: number): boolean {
    const since = suspects.get(id)
    return since !== undefined && performance.now() - since < ms
  }

  /**
   * Checks the signature with what is known of the runner or, where that does not fit, with its row as it is now: it
   * may have made itself a new key elsewhere.
   */
  async function signedBy(token: string, kid: string) {
    const began = performance.now()
    const one = await known(kid)
    try {
      return { one, ...(await signed(token, one)) }
    } catch (error) {
      if (!isForged(error) || isSuspect(kid, REREAD_MS)) throw refusal(error)
    }
    // Others may have it read anew already.
    if (one.at < began && runners.get(kid) === one) runners.delete(kid)
    const fresh = await known(kid)
    try {
      return { one: fresh, ...(await signed(token, fresh)) }
    } catch (error) {
      if (isForged(error)) suspects.set(kid, performance.now())
      throw refusal(error)
    }
  }

  async function check(token: string): Promise<RunnerIdentity> {
    const { kid } = headerOf(token)
    const { one, payload, by } = await signedBy(token, kid)
    admit(one)
    if (by === one.present && one.former) {
      await store.dropFormerKey(db, one.runner.id, by.x)
      forget(kid)
    }
    // It is not checked again until then. `iat` is there: an age is asked for.
    const expiresAt = Math.min(payload.exp ?? 0, payload.iat! + LONGEST_LIFE_S) * 1000
    tokens.set(token, { id: kid, signedWith: by.x, expiresAt })
    return { ...one.runner, signedWith: by.x }
  }

  return {
    async verify(token) {
      const seen = tokens.get(token)
      if (!seen || seen.expiresAt <= Date.now()) return check(token)
      const one = await known(seen.id)
      admit(one)
      const { runner, present, former } = one
      const isKey = seen.signedWith === present.x || seen.signedWith === former?.x
      return isKey ? { ...runner, signedWith: seen.signedWith } : check(token)
    },
    knows(token) {
      if (tokens.has(token)) return true
      try {
        const { kid } = headerOf(token)
        return runners.has(kid) && !isSuspect(kid, SUSPECT_MS)
      } catch {
        return false
      }
    },
    forget,
  }
}

function keepRunners(db: Db) {
  const runners = new LRUCache<string, Known>({ max: MOST_RUNNERS })
  /** Runners that are being read: many who ask at once cost one query. */
  const reading = new Map<string, Promise<Known>>()

  async function known(id: string): Promise<Known> {
    const found = runners.get(id)
    if (found && performance.now() - found.at < KEY_FRESH_MS) return found
    const underWay = reading.get(id)
    if (underWay) return underWay
    const fresh = read(db, id)
    reading.set(id, fresh)
    try {
      const one = await fresh
      if (reading.get(id) === fresh) runners.set(id, one)
      return one
    } finally {
      if (reading.get(id) === fresh) reading.delete(id)
    }
  }

  function forget(id: string): void {
    runners.delete(id)
    // It may have been read before it changed.
    reading.delete(id)
  }

  return { runners, known, forget }
}

async function read(db: Db, id: string): Promise<Known> {
  const row = await store.credential(db, id)
  if (!row) throw new Fault('UNAUTHENTICATED', {}, 'This runner is not registered here. Register it with a new token.')
  return {
    at: performance.now(),
    isRevoked: row.state === 'revoked',
    runner: { kind: 'runner', id: row.id, name: row.name, orgId: row.orgId, poolId: row.poolId },
    present: await keyOf(row.publicKey),
    former: row.formerKey ? await keyOf(row.formerKey) : undefined,
  }
}

/** Only whoever signs as the runner hears that it was revoked: an agent that could not be told then stops asking. */
function admit({ isRevoked }: Known): void {
  if (!isRevoked) return
  const sentence = 'This runner was revoked, which is for good. Register the machine anew with a new token.'
  throw new Fault('UNAUTHENTICATED', { reason: REVOKED_REASON }, sentence)
}

async function keyOf(jwk: Record<string, string>): Promise<Key> {
  return { x: jwk['x']!, key: await importJWK(jwk, 'EdDSA') }
}

function headerOf(token: string): { kid: string } {
  try {
    const { kid } = decodeProtectedHeader(token)
    // What has not the form of an id may hold what no column takes, such as U+0000.
    if (typeof kid === 'string' && /^rnr_[0-9a-z]{26}$/.test(kid)) return { kid }
  } catch {
    // Not a JWT at all: told below, like one without a `kid`.
  }
  throw new Fault('UNAUTHENTICATED', {}, 'Agents send a JWT that they signed themselves, with the runner id as `kid`.')
}

/**
 * The key before the present one serves as long as it is known: an agent may have died before it had the new one for
 * good.
 */
async function signed(token: string, { runner, present, former }: Known): Promise<{ payload: JWTPayload; by: Key }> {
  try {
    return { payload: await payloadOf(token, present, runner.id), by: present }
  } catch (error) {
    if (!former || !isForged(error)) throw error
    return { payload: await payloadOf(token, former, runner.id), by: former }
  }
}

function isForged(error: unknown): boolean {
  return error instanceof errors.JWSSignatureVerificationFailed
}

async function payloadOf(token: string, { key }: Key, id: string): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, key, {
    audience: AGENT_AUDIENCE,
    subject: id,
    algorithms: ['EdDSA'],
    maxTokenAge: LONGEST_LIFE_S,
    clockTolerance: TOLERANCE_S,
  })
  return payload
}

function refusal(error: unknown): unknown {
  if (error instanceof errors.JWTExpired)
    return new Fault('UNAUTHENTICATED', {}, "The agent's token has expired. Is the clock of its host right?")
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'iat')
    return new Fault('UNAUTHENTICATED', {}, "The agent's token is not of now. Is the clock of its host right?")
  if (error instanceof errors.JOSEError)
    return new Fault(
      'UNAUTHENTICATED',
      isForged(error) ? { reason: OTHER_KEY_REASON } : {},
      "The agent's token does not verify against its registered key.",
    )
  return error
}
