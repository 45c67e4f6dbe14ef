/**
 * How much of deliveries that nobody has signed is kept: whoever knows an address can send them, from as many places as
 * he likes. Counted by source and minute, in each coordinator apart. Verified ones are not concerned.
 */
import { LRUCache } from 'lru-cache'
import { newId } from '@windlass/shared/ids.ts'

const MINUTE_MS = 60_000
/** How many of a minute are kept whole, and how many bytes of payloads with them. */
const MOST_WHOLE = 100
const MOST_WHOLE_BYTES = 16 * 1024 * 1024
/** Of more of them the head is kept; beyond these they are counted only. */
const MOST_ROWS = 1000
/** The count is written at most so often. */
const TELL_MS = 1000

type Keeping = { what: 'whole' | 'head' | 'nothing' } | CountRow

/** The row that has the count of a minute is to be written: for the first time, or anew. */
export interface CountRow {
  what: 'count'
  id: string
  isFirst: boolean
  reason: string
}

/** What is to be kept of one more unverified delivery of this source. */
export type CountUnverified = (sourceId: string, bytes: number) => Keeping

/** Number of sources whose counts are remembered. */
const MOST_SOURCES = 20_000

interface Counts {
  startedAt: number
  rows: number
  wholeBytes: number
  /** Of those that have no row. */
  further: number
  row?: { id: string; toldAt: number }
}

export function createUnverifiedCounts(now: () => number = () => performance.now()): CountUnverified {
  const bySource = new LRUCache<string, Counts>({ max: MOST_SOURCES })

  return (sourceId, bytes) => {
    const known = bySource.get(sourceId)
    const isOver = known === undefined || now() - known.startedAt >= MINUTE_MS
    const counts = isOver ? { startedAt: now(), rows: 0, wholeBytes: 0, further: 0 } : known
    if (isOver) bySource.set(sourceId, counts)
    if (counts.rows >= MOST_ROWS) return further(counts, now())
    counts.rows++
    const isWhole = counts.rows <= MOST_WHOLE && counts.wholeBytes + bytes <= MOST_WHOLE_BYTES
    if (isWhole) counts.wholeBytes += bytes
    return { what: isWhole ? 'whole' : 'head' }
  }
}

function further(counts: Counts, at: number): Keeping {
  counts.further++
  const isFirst = counts.row === undefined
  if (counts.row && at - counts.row.toldAt < TELL_MS) return { what: 'nothing' }
  counts.row = { id: counts.row?.id ?? newId('dlv'), toldAt: at }
  const reason =
    `At least ${counts.further} further deliveries of this minute could not be verified. They are only counted, ` +
    `beyond ${MOST_ROWS} at one address.`
  return { what: 'count', id: counts.row.id, isFirst, reason }
}

/** Said of a row whose payload is cut though it is not too large. */
export const CUT_REASON =
  `Only the beginning of the payload is kept: more than ${MOST_WHOLE} deliveries, or ` +
  `${MOST_WHOLE_BYTES / 1024 / 1024} MiB, of this minute could not be verified here.`
