import { randomUUID } from 'node:crypto'
import { importJWK, SignJWT, type CryptoKey } from 'jose'
import { AGENT_AUDIENCE } from '@windlass/shared/wire/agent.ts'
import type { Identity } from '../identity.ts'
import type { FormerKey, Keys } from '../keys.ts'
import type { Clock } from './clock.ts'

/** Gives the bearer token of the moment. */
export type Credential = () => Promise<string>

const LIVES_S = 60
/** Renewed with a quarter of its life left, so that a request on its way does not expire. */
const REUSED_MS = 45_000

interface Made {
  token: Promise<string>
  at: number
  /** By the clock of this machine, which runs on while it sleeps. */
  wallAt: number
  offsetMs: number
  key: unknown
}

/** Short tokens that the agent signs itself: nothing that a coordinator keeps could be stolen and used. */
export function createCredential(runner: string, keys: Pick<Keys, 'current'>, clock: Clock): Credential {
  let made: Made | undefined

  const isFresh = ({ at, wallAt, offsetMs, key }: Made) => {
    const wallMs = Date.now() - wallAt
    if (performance.now() - at >= REUSED_MS || wallMs < 0 || wallMs >= REUSED_MS) return false
    return offsetMs === clock.offsetMs && key === keys.current()
  }

  return () => {
    if (made && isFresh(made)) return made.token
    const at = performance.now()
    made = {
      token: sign(runner, keys.current(), clock),
      at,
      wallAt: Date.now(),
      offsetMs: clock.offsetMs,
      key: keys.current(),
    }
    return made.token
  }
}

function sign(runner: string, key: CryptoKey | Uint8Array, clock: Clock): Promise<string> {
  const issuedAt = Math.floor(clock.now() / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'EdDSA', kid: runner })
    .setSubject(runner)
    .setAudience(AGENT_AUDIENCE)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIVES_S)
    .setJti(randomUUID())
    .sign(key)
}

/** A bearer token of a former key, and what to call when the coordinator has taken it. */
export interface FormerCredential extends Pick<FormerKey, 'serves'> {
  token: string
}

/** Answers by how many keys ago; undefined when there are no former keys. */
export type FormerCredentials = (nth: number) => Promise<FormerCredential | undefined>

export function createFormerCredentials(runner: string, keys: Pick<Keys, 'former'>, clock: Clock): FormerCredentials {
  return async (nth) => {
    const former = await keys.former(nth)
    return former && { token: await sign(runner, former.key, clock), serves: former.serves }
  }
}

/** With the key as it is at present, for who asks once and goes. */
export async function credentialOf({ runner, privateKey }: Identity, clock: Clock): Promise<Credential> {
  const key = await importJWK(privateKey, 'EdDSA')
  return createCredential(runner, { current: () => key }, clock)
}
