import { Fault } from '@windlass/shared/errors.ts'
import type { ProgramIdentity } from '../actor.ts'
import { createPerMinute } from './per-minute.ts'

/** Bounds requests with the token of a run, which no bucket of callers knows. */
export interface ProgramRequests {
  /** Throws RATE_LIMITED where it is one too many. */
  take(program: Pick<ProgramIdentity, 'runId' | 'epoch'>): void
}

/** Its agent asks for secrets when the run starts; the program may look at its run every second. */
const MOST = 120
const WINDOW_MS = 60_000

export function createProgramRequests(limit = MOST): ProgramRequests {
  const perMinute = createPerMinute(limit)
  return {
    take({ runId, epoch }) {
      // The next attempt has its own, whatever the program did in this one.
      if (perMinute.take(`${runId}/${epoch}`)) return
      const detail = { scope: 'run', limit, windowMs: WINDOW_MS, retryAfterMs: WINDOW_MS }
      const message = `This run has sent ${limit} requests in a minute; try again in ${WINDOW_MS / 1000} s.`
      throw new Fault('RATE_LIMITED', detail, message)
    },
  }
}
