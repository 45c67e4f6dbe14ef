import { importJWK, jwtVerify, decodeProtectedHeader, errors, type CryptoKey } from 'jose'
import { Fault } from '@windlass/shared/errors.ts'
import { AGENT_AUDIENCE } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import * as store from './store.ts'

/** Agents sign anew every 45 s. Whatever a token says of itself, it serves no longer than this. */
const LONGEST_LIFE_S = 70
/** The clock of an agent's host may be off by this much. */
const TOLERANCE_S = 30
/** 5 s: a revoked runner is out of every coordinator after this long. */
const KEY_FRESH_MS = 5000
const KEPT = 5000

interface Known {
  at: number
  identity: RunnerIdentity
  key: CryptoKey | Uint8Array
}

/** Tells which installed agent signed a token. Its public key was given at registration; nothing else is stored here. */
export function createRunnerVerifier(db: Db): (bearer: string) => Promise<RunnerIdentity> {
  const runners = new Map<string, Known>()
  const tokens = new Map<string, { id: string; expiresAt: number }>()

  return async (bearer) => {
    const seen = tokens.get(bearer)
    if (seen && seen.expiresAt > Date.now()) return (await known(seen.id)).identity
    const { kid } = headerOf(bearer)
    const { identity, key } = await known(kid)
    const expiresAt = await expiryOf(bearer, key, identity.id)
    if (tokens.size >= KEPT) tokens.clear()
    tokens.set(bearer, { id: identity.id, expiresAt })
    return identity
  }

  async function known(id: string): Promise<Known> {
    const kept = runners.get(id)
    if (kept && performance.now() - kept.at < KEY_FRESH_MS) return kept
    const row = await store.credential(db, id)
    if (!row || row.state === 'revoked')
      throw new Fault(
        'UNAUTHENTICATED',
        {},
        'This runner is not registered here, or was revoked. Register it again with a new token.',
      )
    const key = await importJWK(row.publicKey, 'EdDSA')
    const identity: RunnerIdentity = {
      kind: 'runner',
      id: row.id,
      name: row.name,
      orgId: row.orgId,
      poolId: row.poolId,
    }
    const fresh = { at: performance.now(), identity, key }
    if (runners.size >= KEPT) runners.clear()
    runners.set(id, fresh)
    return fresh
  }
}

function headerOf(bearer: string): { kid: string } {
  try {
    const { kid } = decodeProtectedHeader(bearer)
    if (kid) return { kid }
  } catch {
    // Not a JWT at all: told below, like one without a `kid`.
  }
  throw new Fault('UNAUTHENTICATED', {}, 'Agents send a JWT that they signed themselves, with the runner id as `kid`.')
}

async function expiryOf(bearer: string, key: Known['key'], id: string): Promise<number> {
  try {
    const { payload } = await jwtVerify(bearer, key, {
      audience: AGENT_AUDIENCE,
      subject: id,
      algorithms: ['EdDSA'],
      maxTokenAge: LONGEST_LIFE_S,
      clockTolerance: TOLERANCE_S,
    })
    // It is not checked again until then. `iat` is there: an age is asked for.
    return Math.min(payload.exp ?? 0, payload.iat! + LONGEST_LIFE_S) * 1000
  } catch (error) {
    if (error instanceof errors.JWTExpired)
      throw new Fault('UNAUTHENTICATED', {}, "The agent's token has expired. Is the clock of its host right?")
    if (error instanceof errors.JOSEError)
      throw new Fault('UNAUTHENTICATED', {}, "The agent's token does not verify against its registered key.")
    throw error
  }
}
