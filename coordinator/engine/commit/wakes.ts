import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../../db/client.ts'
import * as store from '../store/undelivered.ts'

export type { Cursors } from '../store/undelivered.ts'

/** What goes into one frame. */
export interface Page {
  runs: Wake[]
  /** With what was told before. Undefined: there is no more behind it. */
  cursors: store.Cursors | undefined
}

/** What the programs of a runner wait for, and have not been given. */
export async function wakesFor(db: Db, runnerId: string, ask: store.UndeliveredAsk): Promise<Page> {
  const rows = await store.undelivered(db, runnerId, ask)
  const runs = [...Map.groupBy(rows, (row) => row.runId)].map(([run, found]) => ({
    run,
    epoch: found[0]!.epoch,
    completions: found.map(({ n, state, result }) => ({ n, state, result })),
  }))
  if (store.isAll(rows)) return { runs, cursors: undefined }
  return {
    runs,
    cursors: new Map([...ask.cursors, ...rows.map(({ runId, completion }) => [runId, completion] as const)]),
  }
}
