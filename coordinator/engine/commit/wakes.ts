import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../../db/client.ts'
import * as store from '../store/journal.ts'

/** By runner: what its programs wait for, and have not been given. */
export async function wakesFor(db: Db, runnerIds: readonly string[]): Promise<Map<string, Wake[]>> {
  const rows = await store.undelivered(db, runnerIds)
  return new Map([...Map.groupBy(rows, (row) => row.runnerId)].map(([runnerId, found]) => [runnerId, wakesOf(found)]))
}

function wakesOf(rows: store.PendingWake[]): Wake[] {
  return [...Map.groupBy(rows, (row) => row.runId)].map(([run, found]) => ({
    run,
    epoch: found[0]!.epoch,
    completions: found.map(({ n, state, result }) => ({ n, state, result })),
  }))
}
