import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Rest } from '../link/rest.ts'
import { JournalSplitter, NO_JOURNAL, type RecordedJournal, UnreadableJournal } from './program/recorded-journal.ts'

/** For answers without a byte of it. */
const DEADLINE_MS = 60_000
/** So often it may end in the middle, after however long: the coordinator cuts what readers of an org leave behind. */
const MOST_CUTS = 5
const BACKOFF = { firstMs: 100, capMs: 5_000 }
/** What will not change by asking again: the run is somebody else's by now, or over. */
const FINAL: readonly string[] = ['NOT_FOUND', 'STALE_PLACEMENT']

/** The journal of an offered run: it came with the offer, or is fetched when it is too long for that. */
export async function journalOf(
  rest: Pick<Rest, 'journal'>,
  offer: Offer,
  signal: AbortSignal,
): Promise<RecordedJournal> {
  if (offer.journal.text !== null) return splitInline(offer.journal.text)
  if (offer.journal.entries === 0) return NO_JOURNAL
  let deadline = performance.now() + DEADLINE_MS
  let cuts = 0
  for (let failures = 0; ; failures++) {
    let hasBegun = false
    try {
      const splitter = new JournalSplitter()
      await rest.journal(offer.run, offer.epoch, signal, (bytes) => {
        hasBegun = true
        splitter.push(bytes)
      })
      return splitter.end()
    } catch (error) {
      if (isFinal(error) || signal.aborted) throw error
      if (hasBegun) {
        cuts += 1
        deadline = performance.now() + DEADLINE_MS
      }
      const waitMs = backoffMs(failures, BACKOFF)
      if (cuts > MOST_CUTS || performance.now() + waitMs > deadline) throw error
      await pause(waitMs, signal)
    }
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof UnreadableJournal || (error instanceof ApiError && FINAL.includes(error.code))
}

function splitInline(text: string): RecordedJournal {
  const splitter = new JournalSplitter()
  splitter.push(Buffer.from(text))
  return splitter.end()
}
