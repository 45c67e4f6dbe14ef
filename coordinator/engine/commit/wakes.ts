import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../../db/client.ts'
import * as store from '../store/journal.ts'

/**
 * What the programs of a runner wait for, and have not been given, behind this completion: so much as goes into one
 * frame. `last`: there may be more behind this one.
 */
export async function wakesFor(db: Db, runnerId: string, after = 0): Promise<{ runs: Wake[]; last?: number }> {
  const rows = await store.undelivered(db, runnerId, after)
  const runs = [...Map.groupBy(rows, (row) => row.runId)].map(([run, found]) => ({
    run,
    epoch: found[0]!.epoch,
    completions: found.map(({ n, state, result }) => ({ n, state, result })),
  }))
  const last = rows.at(-1)
  return last && charsOf(rows) >= store.WAKE_CHARS ? { runs, last: last.completion } : { runs }
}

export function charsOf(completions: readonly { result: string }[]): number {
  return completions.reduce((sum, { result }) => sum + result.length, 0)
}
