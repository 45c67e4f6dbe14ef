import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

export type Slot = 'current' | 'previous'

export interface OwnedRow {
  ownerId: string
  slot: Slot
  orgId: OrgId
  sealed: string
}

/** Replaces the current secret. That one serves on for `overlapMs`; with 0 it is gone at once. */
export async function replace(tx: Tx, row: Omit<OwnedRow, 'slot'>, overlapMs: number): Promise<Date | null> {
  const { ownerId, orgId, sealed } = row
  await tx`delete from owned_secrets where owner_id = ${ownerId} and org_id = ${orgId} and slot = 'previous'`
  const [previous] = await tx<{ endsAt: Date }[]>`
    insert into owned_secrets (owner_id, slot, org_id, sealed, ends_at)
    select owner_id, 'previous', org_id, sealed, now() + ${overlapMs}::float8 * interval '1 millisecond'
    from owned_secrets
    where owner_id = ${ownerId} and org_id = ${orgId} and slot = 'current' and ${overlapMs}::float8 > 0
    returning ends_at`
  await tx`
    insert into owned_secrets (owner_id, slot, org_id, sealed)
    values (${ownerId}, 'current', ${orgId}, ${sealed})
    on conflict (owner_id, slot) do update set sealed = excluded.sealed`
  return previous?.endsAt ?? null
}

/** Those that serve now, the current one first. A sender names no org: the id alone leads to them. */
export function serving(sql: Sql, ownerId: string): Promise<OwnedRow[]> {
  return sql<OwnedRow[]>`
    select owner_id, slot, org_id, sealed
    from owned_secrets
    where owner_id = ${ownerId} and (ends_at is null or ends_at > now())
    order by slot`
}

export function remove(tx: Tx, orgId: OrgId, ownerId: string): PromiseLike<unknown> {
  return tx`delete from owned_secrets where owner_id = ${ownerId} and org_id = ${orgId}`
}

export interface OwnedState {
  ownerId: string
  hasSecret: boolean
  previousUntil: Date | null
}

/** Whether things have a secret, and until when the one of before serves. */
export function statesOf(sql: Sql, orgId: OrgId, ownerIds: readonly string[]): Promise<OwnedState[]> {
  return sql<OwnedState[]>`
    select owner_id, bool_or(slot = 'current') as has_secret,
           max(ends_at) filter (where ends_at > now()) as previous_until
    from owned_secrets
    where owner_id = any(${[...ownerIds]}) and org_id = ${orgId}
    group by owner_id`
}

/** The next that are sealed with one of these keys. Nobody changes them until the end of `tx`. */
export function lockSealedWith(
  tx: Tx,
  fingerprints: readonly string[],
  { after, limit }: { after: OwnedRow | undefined; limit: number },
): Promise<OwnedRow[]> {
  return tx<OwnedRow[]>`
    select owner_id, slot, org_id, sealed
    from owned_secrets
    where split_part(sealed, '.', 2) = any(${[...fingerprints]})
      and (owner_id, slot) > (${after?.ownerId ?? ''}, ${after?.slot ?? ''})
    order by owner_id, slot
    limit ${limit}
    for update`
}

/** No change of the secret: it serves as long as before. */
export async function reseal(tx: Tx, rows: readonly OwnedRow[]): Promise<void> {
  await tx`
    update owned_secrets s
    set sealed = r.sealed
    from ${unnest(tx, 'r', rows, { ownerId: 'text', slot: 'text', sealed: 'text' })}
    where s.owner_id = r.owner_id and s.slot = r.slot`
}

/** Removes the secrets that were replaced and whose overlap has ended. */
export async function removeEnded(sql: Sql): Promise<void> {
  await sql`delete from owned_secrets where ends_at <= now()`
}
