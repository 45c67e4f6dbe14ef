import { type DeliveryId, firstIdAt, type OrgId } from '@windlass/shared/ids.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { Tx } from '../db/client.ts'

/**
 * Deletes the oldest deliveries from before a moment, with what was decided. Answers the keys of their payloads too.
 * Ids are made by the clocks of coordinators, of which one may be behind: what is new has an old id then.
 */
export async function removeOldest(
  tx: Tx,
  orgId: OrgId,
  { end, most }: { end: number; most: number },
): Promise<{ ids: DeliveryId[]; keys: string[] }> {
  const removed = await tx<{ id: DeliveryId; payloadKey: string | null }[]>`
    delete from deliveries
    where id = any(array(
      select id
      from deliveries
      where (org_id, id) > (${orgId}, '') and (org_id, id) < (${orgId}, ${firstIdAt('dlv', end)})
        and ${onlyFilters(tx, tx`received_at < to_timestamp(${end}::float8 / 1000)`)}
      order by org_id, id
      limit ${most}
    ))
    returning id, payload_key`
  const ids = removed.map(({ id }) => id)
  await tx`delete from delivery_matches where delivery_id = any(${ids})`
  return { ids, keys: removed.flatMap(({ payloadKey }) => payloadKey ?? []) }
}
