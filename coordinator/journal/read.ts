import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import * as store from './store.ts'

/** A longer journal is fetched by itself, so that the answer to a poll stays small. */
const INLINE_CHARS = 64 * 1024

/** The journals of runs that are being offered, as JSON of `JournalRecord[]`; what is too long is left out. */
export async function inlineJournals(
  db: Db,
  runs: readonly { runId: RunId; attempt: number }[],
): Promise<Map<RunId, string>> {
  if (runs.length === 0) return new Map()
  const rows = await store.recordsOf(db, runs, INLINE_CHARS)
  return new Map(rows.map((row) => [row.runId, row.text]))
}

/** The journal of a run, for the agent that it was offered to. */
export async function journalFor(
  deps: Pick<Deps, 'db'>,
  runner: RunnerIdentity,
  { run: runId, epoch }: { run: RunId; epoch: number },
): Promise<string> {
  const placed = await store.placedRun(deps.db, runner.orgId, runId)
  if (!placed) throw new Fault('NOT_FOUND', { run: runId })
  if (placed.runnerId !== runner.id || placed.epoch !== epoch || placed.place === null)
    throw new Fault('STALE_PLACEMENT', { run: runId, epoch })
  const [row] = await store.recordsOf(deps.db, [{ runId, attempt: placed.attempt }], Number.MAX_SAFE_INTEGER)
  return row?.text ?? '[]'
}
