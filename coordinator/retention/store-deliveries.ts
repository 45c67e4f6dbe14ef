import type { DeliveryId, OrgId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'

/** Deletes the oldest deliveries before an id, with what was decided. Answers the keys of their payloads too. */
export async function removeOldest(
  tx: Tx,
  orgId: OrgId,
  { before, most }: { before: string; most: number },
): Promise<{ ids: DeliveryId[]; keys: string[] }> {
  const removed = await tx<{ id: DeliveryId; payloadKey: string | null }[]>`
    delete from deliveries
    where id = any(array(
      select id
      from deliveries
      where (org_id, id) > (${orgId}, '') and (org_id, id) < (${orgId}, ${before})
      order by org_id, id
      limit ${most}
    ))
    returning id, payload_key`
  const ids = removed.map(({ id }) => id)
  await tx`delete from delivery_matches where delivery_id = any(${ids})`
  return { ids, keys: removed.flatMap(({ payloadKey }) => payloadKey ?? []) }
}
