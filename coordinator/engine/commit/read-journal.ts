import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { RunnerIdentity } from '../../actor.ts'
import type { Db } from '../../db/client.ts'
import { createSeats } from '../../limits/seats.ts'
import type { UnreadBytes } from '../../limits/unread-bytes.ts'
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
const PIECE_BYTES = 64 * 1024

/** A journal on its way to an agent. */
interface SentJournal {
  pieces: AsyncGenerator<Uint8Array, void, void>
  /** The reader takes nothing, while too much lies here for all of them. */
  cut: AbortSignal
}

/**
 * The journal of a run, for the agent that it was offered to, as JSON text in pieces: 32 MiB of results, which are six
 * times as long as text when they hold nothing but characters that JSON escapes.
 */
export async function journalFor(
  deps: { db: Db; unreadJournals: UnreadBytes },
  runner: RunnerIdentity,
  { run: runId, epoch, assertConnected }: { run: RunId; epoch: number; assertConnected?: () => void },
): Promise<SentJournal> {
  const placed = await store.placedRun(deps.db, runner.orgId, runId)
  if (!placed) throw new Fault('NOT_FOUND', { run: runId })
  if (placed.runnerId !== runner.id || placed.epoch !== epoch || placed.place === null)
    throw new Fault('STALE_PLACEMENT', { run: runId, epoch })
  const cutting = new AbortController()
  const hold = (bytes: number) => deps.unreadJournals.hold(runner.orgId, bytes, () => cutting.abort())
  const pages = pagesOf(deps.db, { ...placed, runId }, { orgId: runner.orgId, assertConnected })
  return { pieces: piecesOf(pages, hold), cut: cutting.signal }
}

/**
 * A page is several megabytes when an entry is large, and its reader may take none of it. As bytes and not as text: a
 * piece may end within a character.
 */
async function* piecesOf(
  pages: AsyncIterable<Buffer>,
  hold: (bytes: number) => () => void,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const page of pages) {
    const release = hold(page.length)
    try {
      for (let at = 0; at < page.length; at += PIECE_BYTES) yield page.subarray(at, at + PIECE_BYTES)
    } finally {
      release()
    }
  }
}

async function* pagesOf(
  db: Db,
  run: { runId: RunId; forgottenEntries: number },
  { orgId, assertConnected }: { orgId: string; assertConnected: (() => void) | undefined },
): AsyncGenerator<Buffer, void, void> {
  const since = performance.now()
  // Between its pages a slow reader keeps no other from its turn. For one that has gone nothing is read.
  const inTurn = async <T>(read: () => Promise<T>) => {
    const leave = await seats.take(orgId)
    try {
      assertConnected?.()
      return await read()
    } finally {
      leave()
    }
  }
  const last = await inTurn(() => store.lastCompletion(db, run.runId))
  let before = '['
  for (let n = run.forgottenEntries; ;) {
    const after = { n, last }
    const page = await inTurn(async () => printed(await store.recordsAfter(db, run.runId, after), before))
    if (!page) break
    n = page.n
    yield page.bytes
    before = ','
    if (performance.now() - since > LONGEST_MS) throw new Error('the reader of a journal took too long')
  }
  yield Buffer.from(before === '[' ? '[]' : ']')
}

/** Nothing of the records is kept: they take as much again. */
function printed(records: readonly JournalRecord[], before: string): { n: number; bytes: Buffer } | undefined {
  const end = records.at(-1)
  if (!end) return undefined
  return { n: end.n, bytes: Buffer.from(before + records.map((record) => JSON.stringify(record)).join(',')) }
}
