import type { OrgId, PoolId, RunnerId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../db/client.ts'

type Jwk = Record<string, string>

export interface CredentialRow {
  id: RunnerId
  name: string
  orgId: OrgId
  poolId: PoolId
  publicKey: Jwk
  /** The key before, until the present one has been used. */
  formerKey: Jwk | null
  state: string
}

export async function credential(db: Db, id: string): Promise<CredentialRow | undefined> {
  const [row] = await db<CredentialRow[]>`
    select r.id, r.name, r.org_id, r.pool_id, r.public_key, r.former_key, i.state
    from runners r
    join runner_intake i on i.runner_id = r.id
    where r.id = ${id}`
  return row
}

/**
 * Puts a new key in place of the one that the request was signed with, which goes on to serve; not when that happened
 * less than `everyMs` ago. The same key a second time, after an answer that was lost, changes nothing.
 */
export async function replaceKey(
  tx: Tx,
  id: RunnerId,
  { signedWith, next, everyMs }: { signedWith: string; next: Jwk; everyMs: number },
): Promise<{ isNew: boolean; ageMs: number }> {
  const [row] = await tx<[{ isNew: boolean; ageMs: number }]>`
    with present as materialized (
      select
        id,
        public_key->>'x' <> ${next.x!} as is_new,
        extract(epoch from now() - key_changed_at)::float8 * 1000 as age_ms
      from runners
      where id = ${id}
      for update
    ),
    replaced as (
      update runners r
      set
        former_key     = case when r.former_key->>'x' = ${signedWith} then r.former_key else r.public_key end,
        public_key     = ${tx.json(next)},
        key_changed_at = now()
      from present p
      where r.id = p.id and p.is_new and p.age_ms >= ${everyMs}
    )
    select is_new, age_ms from present`
  return row ?? { isNew: false, ageMs: Infinity }
}

/** The present key has been used, so the agent has it for good. */
export async function dropFormerKey(db: Db, id: RunnerId, presentX: string): Promise<void> {
  await db`update runners set former_key = null where id = ${id} and public_key->>'x' = ${presentX}`
}
