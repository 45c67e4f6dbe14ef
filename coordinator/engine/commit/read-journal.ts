import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { RunnerIdentity } from '../../actor.ts'
import type { Db } from '../../db/client.ts'
import { createSeats } from '../../limits/seats.ts'
import * as store from '../store/journal.ts'

/** A longer journal is fetched by itself, so that the answer to a poll stays small. */
const INLINE_CHARS = 64 * 1024

/** The journals of runs that are being offered, as JSON of `JournalRecord[]`; what is too long is left out. */
export async function inlineJournals(db: Db, runs: Parameters<typeof store.recordsOf>[1]): Promise<Map<RunId, string>> {
  if (runs.length === 0) return new Map()
  const rows = await store.recordsOf(db, runs, INLINE_CHARS)
  return new Map(rows.map((row) => [row.runId, row.text]))
}

/** Readers of journals in this process, each with one page. A coordinator has 12 connections for all that it reads. */
const seats = createSeats({ org: 2, all: 8 })
/** At 1 Mbit/s. A reader that takes nothing for a while is cut off before. */
const LONGEST_MS = 600_000

/**
 * The journal of a run, for the agent that it was offered to, as JSON text in pieces: 32 MiB of results, which are six
 * times as long as text when they hold nothing but characters that JSON escapes.
 */
export async function journalFor(
  { db }: { db: Db },
  runner: RunnerIdentity,
  { run: runId, epoch }: { run: RunId; epoch: number },
): Promise<AsyncGenerator<string, void, void>> {
  const placed = await store.placedRun(db, runner.orgId, runId)
  if (!placed) throw new Fault('NOT_FOUND', { run: runId })
  if (placed.runnerId !== runner.id || placed.epoch !== epoch || placed.place === null)
    throw new Fault('STALE_PLACEMENT', { run: runId, epoch })
  return journalText(db, { ...placed, runId }, runner.orgId)
}

async function* journalText(
  db: Db,
  run: { runId: RunId; attempt: number; forgottenEntries: number },
  orgId: string,
): AsyncGenerator<string, void, void> {
  const since = performance.now()
  // Between its pages a slow reader keeps no other from its turn.
  const inTurn = async <T>(read: () => Promise<T>) => {
    const leave = await seats.take(orgId)
    try {
      return await read()
    } finally {
      leave()
    }
  }
  const last = await inTurn(() => store.lastCompletion(db, run.runId))
  let before = '['
  for (let n = run.forgottenEntries; ;) {
    const after = { n, last }
    const records = await inTurn(() => store.recordsAfter(db, run, after))
    if (records.length === 0) break
    n = records.at(-1)!.n
    yield before + records.map((record) => JSON.stringify(record)).join(',')
    before = ','
    if (performance.now() - since > LONGEST_MS) throw new Error('the reader of a journal took too long')
  }
  yield before === '[' ? '[]' : ']'
}
