import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import { listRuns } from './read.ts'
import * as store from './store.ts'
import type { RunFilter } from './store-list.ts'

/** The runs that this one has called itself. Their own children are found through them. */
export async function listChildren(
  deps: { db: Db },
  filter: RunFilter & { parentRunId: RunId },
): Promise<{ runs: Run[]; fitting: number }> {
  const [parent, children] = await Promise.all([
    store.find(deps.db, filter.orgId, filter.parentRunId),
    listRuns(deps, filter),
  ])
  if (!parent) throw new Fault('NOT_FOUND', { run: filter.parentRunId })
  return children
}
