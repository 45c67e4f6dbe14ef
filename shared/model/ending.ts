import type { Mismatch } from '../wire/journal.ts'

/**
 * The failures of calls that an error leads to, by itself or by its `cause` or `errors`: the numbers of the entries of
 * those that the attempt was given first and last.
 */
export interface LedBy {
  first: number
  last: number
}

export interface ThrownError {
  name: string
  message: string
  stack?: string
  code?: string
  detail?: Record<string, unknown>
  /** Left out: it leads to none, or the agent is of a version before. */
  ledBy?: LedBy
}

/** How a program ended, as its agent reports it. An ending is a value, because every ending is reported. */
export type Ending =
  | { how: 'returned'; outputText: string }
  | { how: 'threw'; error: ThrownError }
  | { how: 'exited'; exitCode: number }
  /** `reason`: where the agent knows why, as when there was too little memory. */
  | { how: 'killed'; signal: string; reason?: string }
  | { how: 'timed-out'; timeoutMs: number }
  | { how: 'cancelled'; forced: boolean }
  | { how: 'lost'; reason: string }
  /** It could not be prepared just now, and nothing of it has begun: it is to be offered again a little later. Where that is the host's fault too often, it gets no more. */
  | { how: 'unready'; reason: string; blame?: 'host' | 'service' }
  /** It was parked, its journal is committed, and its process was given up. The run goes on elsewhere, later. */
  | { how: 'evicted'; reason: string }
  /** Its replay met something else than the journal has. */
  | { how: 'blocked'; mismatch: Mismatch }
