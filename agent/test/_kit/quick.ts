import type { Paces } from '../../paces.ts'

/** Of an agent that looks at everything all the time: a test waits for what follows from a look, not for the look. */
export const QUICK: Paces = {
  unreadyMs: 20,
  checkMs: 50,
  freshMs: 50,
  pollLookMs: 20,
  memoryMs: 20,
  parkedMs: 300,
  statusMs: 20,
  keyMs: 20,
  keyBackoffMs: 20,
  refusedMs: 20,
  lastFlushMs: 300,
  // No look: a busy machine may be late with an answer.
  acceptMs: 12_000,
}
