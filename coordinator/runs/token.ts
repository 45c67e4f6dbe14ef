import { exportJWK, generateKeyPair, importJWK, jwtVerify, SignJWT, type JWK } from 'jose'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { ProgramIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'

/** What a program proves itself with. It names the run, and the epoch of the placement that it was minted for. */
export interface RunTokens {
  mint(run: { runId: RunId; orgId: OrgId; runnerId: RunnerId; epoch: number }): Promise<string>
  /** Checks signature and age. Whether the placement still lives, only the database knows. */
  verify(token: string): Promise<ProgramIdentity>
}

const AUDIENCE = 'runner'
const LIFE = '10 minutes'
const PURPOSE = 'run-token'

export async function openRunTokens(db: Db): Promise<RunTokens> {
  const jwk = await signingKey(db)
  const privateKey = await importJWK(jwk, 'EdDSA')
  const { d: _, ...publicJwk } = jwk
  const publicKey = await importJWK(publicJwk, 'EdDSA')

  return {
    mint: (run) =>
      new SignJWT({ org: run.orgId, epoch: run.epoch, runner: run.runnerId })
        .setProtectedHeader({ alg: 'EdDSA' })
        .setSubject(run.runId)
        .setAudience(AUDIENCE)
        .setIssuedAt()
        .setExpirationTime(LIFE)
        .sign(privateKey),
    async verify(token) {
      const { payload } = await jwtVerify(token, publicKey, { audience: AUDIENCE, algorithms: ['EdDSA'] }).catch(() => {
        throw new Fault(
          'UNAUTHENTICATED',
          {},
          'Programs send the token of their run, which lives 10 minutes unless its agent renews it.',
        )
      })
      return {
        kind: 'program',
        runId: payload.sub as RunId,
        orgId: payload.org as OrgId,
        runnerId: payload.runner as RunnerId,
        epoch: payload.epoch as number,
      }
    },
  }
}

/** One key for the installation, made by whichever coordinator comes first. */
async function signingKey(db: Db): Promise<JWK> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
  const fresh = await exportJWK(privateKey)
  await db`
    insert into signing_keys (purpose, private_jwk)
    values (${PURPOSE}, ${db.json({ ...fresh })})
    on conflict (purpose) do nothing`
  const [row] = await db<[{ privateJwk: JWK }]>`select private_jwk from signing_keys where purpose = ${PURPOSE}`
  return row.privateJwk
}
