import type { JWK } from 'jose'
import type { Db } from '../db/client.ts'

const PURPOSE = 'run-token'

/** Stores the public key by which all coordinators check tokens of this one, for `lifeMs`. */
export async function publish(db: Db, kid: string, publicJwk: JWK, lifeMs: number): Promise<void> {
  await db`
    insert into signing_keys (purpose, kid, public_jwk, expires_at)
    values (${PURPOSE}, ${kid}, ${db.json({ ...publicJwk })}, now() + ${lifeMs} * interval '1 millisecond')`
}

export async function publicKeys(db: Db): Promise<{ kid: string; publicJwk: JWK }[]> {
  return db<{ kid: string; publicJwk: JWK }[]>`
    select kid, public_jwk from signing_keys where purpose = ${PURPOSE} and expires_at > now()`
}

export async function removeExpired(db: Db): Promise<number> {
  const { count } = await db`delete from signing_keys where expires_at < now()`
  return count
}
