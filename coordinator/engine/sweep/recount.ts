import type { Log } from '@windlass/shared/log.ts'
import type { Db, Sql } from '../../db/client.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { workflowOf } from '../rules/groups.ts'
import { lock } from '../store/concurrency.ts'
import { type Miscounted, miscounted, recount } from '../store/concurrency-counts.ts'

/** Groups of one sweep; the next one takes more. */
const MOST_AT_ONCE = 500

interface RecountDeps {
  db: Db
  log: Log
  metrics: Metrics
}

/** Counts groups anew of which a wrong number is noted, and answers how many. Who has room now is found afterwards. */
export async function recountGroups(deps: RecountDeps, looking: Sql): Promise<number> {
  const found = await miscounted(looking, MOST_AT_ONCE)
  for (const [workflow, groups] of Map.groupBy(found, ({ groupKey }) => workflowOf(groupKey)))
    await recountOf(deps, workflow, groups)
  return found.length
}

/** A workflow whose lock cannot be had must not keep the others from it. */
async function recountOf({ db, log, metrics }: RecountDeps, workflow: string, groups: Miscounted[]): Promise<void> {
  const kind = 'group_miscounted'
  metrics.orphan(kind, groups.length)
  for (const facts of groups) log.error('run.orphan', { kind, ...facts })
  const keys = groups.map(({ groupKey }) => groupKey)
  try {
    await db.begin(async (tx) => {
      await lock(tx, [workflow])
      await recount(tx, keys)
    })
    metrics.repaired(groups.length)
  } catch (error) {
    log.error('run.orphan.unrepaired', { kind, groups: keys, error })
  }
}
