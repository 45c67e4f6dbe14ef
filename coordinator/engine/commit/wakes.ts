import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../../db/client.ts'
import * as store from '../store/journal.ts'

/** What the programs of a runner wait for, and have not been given. */
export async function wakesFor(db: Db, runnerId: string): Promise<Wake[]> {
  const rows = await store.undelivered(db, runnerId)
  return [...Map.groupBy(rows, (row) => row.runId)].map(([run, found]) => ({
    run,
    epoch: found[0]!.epoch,
    completions: found.map(({ n, state, result }) => ({ n, state, result })),
  }))
}
