import type { OrgId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { enqueue } from '../../jobs/queue.ts'

/** One job of an org at a time. */
export function enqueueRest(tx: Tx, orgId: OrgId): Promise<void> {
  const key = `admit:${orgId}`
  return enqueue(tx, 'runs:admit', [{ payload: { orgId }, inMs: 0, key }])
}
