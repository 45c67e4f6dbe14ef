import { randomUUID } from 'node:crypto'
import { importJWK, SignJWT } from 'jose'
import { AGENT_AUDIENCE } from '@windlass/shared/wire/agent.ts'
import type { Identity } from '../identity.ts'

/** Gives the bearer token of the moment. */
export type Credential = () => Promise<string>

const LIVES_S = 60
/** Renewed with a quarter of its life left, so that a request on its way does not expire. */
const REUSED_MS = 45_000

/** Short tokens that the agent signs itself: nothing that a coordinator keeps could be stolen and used. */
export async function createCredential(identity: Pick<Identity, 'runner' | 'privateKey'>): Promise<Credential> {
  const key = await importJWK(identity.privateKey, 'EdDSA')
  let token: Promise<string> | undefined
  let madeAt = 0
  const sign = () =>
    new SignJWT()
      .setProtectedHeader({ alg: 'EdDSA', kid: identity.runner })
      .setSubject(identity.runner)
      .setAudience(AGENT_AUDIENCE)
      .setIssuedAt()
      .setExpirationTime(`${LIVES_S}s`)
      .setJti(randomUUID())
      .sign(key)
  return () => {
    const now = performance.now()
    if (token && now - madeAt < REUSED_MS) return token
    madeAt = now
    token = sign()
    return token
  }
}
