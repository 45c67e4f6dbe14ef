/** How soon an agent looks again at what nobody tells it, and how long it waits for those who may never answer. */
export interface Paces {
  /** Interval of looking whether what is in the way of work is gone. */
  readonly unreadyMs: number
  /** Interval of looking whether the host can take work, while none is asked for. */
  readonly checkMs: number
  /** Upper bound for how long the answer of a check serves. */
  readonly freshMs: number
  /** Interval of looking whether a poll still asks for the right thing. */
  readonly pollLookMs: number
  /** Interval of looking whether there is enough memory for all that is parked. */
  readonly memoryMs: number
  /** Interval of looking whether what is parked computes. */
  readonly parkedMs: number
  /** Interval of looking whether the status file is still true. */
  readonly statusMs: number
  /** Interval of looking at the age of the key, until the coordinator has said how old keys may be. */
  readonly keyMs: number
  /** First pause after a renewal of the key that has failed. */
  readonly keyBackoffMs: number
  /** Least pause after a connection that was refused as unauthenticated. */
  readonly refusedMs: number
  /** How long a coordinator that has refused this agent may take for its last words; then it closes the connection. */
  readonly lastFlushMs: number
  /** The coordinator takes an offer back after 15 s; what it confirms later than this the agent does not begin. */
  readonly acceptMs: number
}

export const PACES: Paces = {
  unreadyMs: 2_000,
  checkMs: 5_000,
  freshMs: Infinity,
  pollLookMs: 100,
  memoryMs: 1_000,
  parkedMs: 5_000,
  statusMs: 500,
  keyMs: 1_000,
  keyBackoffMs: 1_000,
  // Each try counts for its address, with those of its whole fleet: 300 in a minute by default.
  refusedMs: 15_000,
  lastFlushMs: 5_000,
  acceptMs: 12_000,
}
