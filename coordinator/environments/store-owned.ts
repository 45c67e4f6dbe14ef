import type { OrgId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

/** Of secrets that were replaced and serve on for a while. */
export const FORMER = ['previous', 'previous-2', 'previous-3', 'previous-4', 'previous-5'] as const
export type FormerSlot = (typeof FORMER)[number]
export type Slot = 'current' | FormerSlot

export interface Owner {
  orgId: OrgId
  ownerId: string
}

export interface OwnedRow extends Owner {
  slot: Slot
  sealed: string
}

/** As `serving`. Nobody seals them anew before the end of `tx`. */
export function lockServing(tx: Tx, { ownerId, orgId }: Owner): Promise<OwnedRow[]> {
  return tx<OwnedRow[]>`
    select owner_id, slot, org_id, sealed
    from owned_secrets
    where owner_id = ${ownerId} and org_id = ${orgId} and (ends_at is null or ends_at > now())
    order by slot
    for update`
}

/** Has a secret serve on as a former one, in a slot that is free or whose secret has ended. */
export async function serveOn(tx: Tx, row: OwnedRow, overlapMs: number): Promise<void> {
  const { ownerId, slot, orgId, sealed } = row
  await tx`
    insert into owned_secrets (owner_id, slot, org_id, sealed, ends_at)
    values (${ownerId}, ${slot}, ${orgId}, ${sealed}, now() + ${overlapMs}::float8 * interval '1 millisecond')
    on conflict (owner_id, slot) do update set sealed = excluded.sealed, ends_at = excluded.ends_at`
}

export async function setCurrent(tx: Tx, { ownerId, orgId, sealed }: Owner & { sealed: string }): Promise<void> {
  await tx`
    insert into owned_secrets (owner_id, slot, org_id, sealed)
    values (${ownerId}, 'current', ${orgId}, ${sealed})
    on conflict (owner_id, slot) do update set sealed = excluded.sealed`
}

export function removeFormer(tx: Tx, { ownerId, orgId }: Owner): PromiseLike<unknown> {
  return tx`delete from owned_secrets where owner_id = ${ownerId} and org_id = ${orgId} and slot <> 'current'`
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

/** Whether things have a secret, and until when a former one serves: of several the last. */
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
