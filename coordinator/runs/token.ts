import { type KeyObject, sign } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { ProgramIdentity } from '../actor.ts'
import type { DatabaseClock } from '../db/database-clock.ts'
import { createFreshCache } from '../db/fresh-cache.ts'
import { openTokenKeys, type TokenKeys, type TokenKeysDeps } from './token-keys.ts'

/** What a program proves itself with. It names the run, and the epoch of the placement that it was minted for. */
export interface RunTokens {
  mint(run: { runId: RunId; orgId: OrgId; runnerId: RunnerId; epoch: number }): Promise<string>
  /** Checks signature and age. Whether the placement still lives, only the database knows. */
  verify(token: string): Promise<ProgramIdentity>
}

const AUDIENCE = 'runner'
const LIFE_S = 600
/** A check takes 0.2 ms, and a program may show its token hundreds of times a second. It may live so much longer. */
const CHECKED_MS = 5000
const MOST_CHECKED = 5000

/** What one coordinator signs another one may verify: they have the clock of the database in common. */
type RunTokensDeps = TokenKeysDeps & { databaseClock: Pick<DatabaseClock, 'now'> }

export async function openRunTokens({ databaseClock, ...deps }: RunTokensDeps): Promise<RunTokens> {
  const keys = await openTokenKeys(deps)
  const checked = createFreshCache({
    read: (token: string) => check(keys, token, databaseClock.now()),
    freshMs: CHECKED_MS,
    most: MOST_CHECKED,
  })
  return {
    async mint(run) {
      const { kid, key } = await keys.signing()
      const iat = Math.floor(databaseClock.now() / 1000)
      const claims = { org: run.orgId, epoch: run.epoch, runner: run.runnerId }
      return signed(kid, key, { ...claims, sub: run.runId, aud: AUDIENCE, iat, exp: iat + LIFE_S })
    },
    verify: (token) => checked.of(token),
  }
}

async function check(keys: TokenKeys, token: string, now: number): Promise<ProgramIdentity> {
  // Looked up outside of the check: a database that is away is no fault of the token's.
  const key = await keys.verifying(kidOf(token))
  if (!key) throw unauthenticated()
  const currentDate = new Date(now)
  const asked = { audience: AUDIENCE, algorithms: ['EdDSA'], currentDate }
  const { payload } = await jwtVerify(token, key, asked).catch(() => {
    throw unauthenticated()
  })
  return {
    kind: 'program',
    runId: payload.sub as RunId,
    orgId: payload.org as OrgId,
    runnerId: payload.runner as RunnerId,
    epoch: payload.epoch as number,
  }
}

/**
 * A JWT in its compact form (RFC 7515, 7.1). jose signs through WebCrypto: a thread of the pool and 82 µs of CPU a
 * token, which each claimed run pays; this takes 35.
 */
function signed(kid: string, key: KeyObject, claims: object): string {
  const text = `${inBase64({ alg: 'EdDSA', kid })}.${inBase64(claims)}`
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
}

const inBase64 = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')

function kidOf(token: string): string {
  try {
    const { kid } = decodeProtectedHeader(token)
    if (kid !== undefined) return kid
  } catch {
    // Not a token at all.
  }
  throw unauthenticated()
}

function unauthenticated(): Fault {
  const message = 'Programs send the token of their run, which lives 10 minutes unless its agent renews it.'
  return new Fault('UNAUTHENTICATED', {}, message)
}
