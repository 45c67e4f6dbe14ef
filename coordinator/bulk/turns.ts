import type { OrgId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'
import { enqueue } from '../jobs/queue.ts'
import type { JobRow } from './row.ts'
import * as store from './store-turns.ts'

/** A turn that has failed comes again after this time. One whose process was killed does by itself. */
export const AGAIN_MS = 15_000

/**
 * Jobs of one org take turns in one place of the line, however many it has: orgs alternate, not their jobs. Whose turn
 * it is stands in the table: graphile-worker does a job no more whose key a later one has taken, also when the process
 * that was at it is killed.
 */
export function enqueueTurn(tx: Tx, orgId: OrgId): Promise<void> {
  return enqueue(tx, 'bulkJobs:turn', [{ payload: { orgId }, inMs: 0, key: store.turnKey(orgId) }])
}

type JobOfOrg = Pick<JobRow, 'id' | 'orgId'>

/** The others of its org have their turns meanwhile. */
export async function putOff(tx: Tx, { id, orgId }: JobOfOrg, inMs: number): Promise<void> {
  await store.putOff(tx, id, inMs)
  await enqueue(tx, 'bulkJobs:turn', [{ payload: { orgId }, inMs, key: store.putOffKey(id) }])
}

/** What was put off has the next turn of its org. */
export async function putFirst(tx: Tx, { id, orgId }: JobOfOrg): Promise<void> {
  await store.putFirst(tx, id)
  await enqueue(tx, 'bulkJobs:turn', [{ payload: { orgId }, inMs: 0, key: store.putOffKey(id) }])
}
