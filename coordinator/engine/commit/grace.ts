import type { Config } from '../../config.ts'
import { pulseLimitMs } from '../store/pulse.ts'

/** What is told of a pulse, by the clock of the database. */
interface Noted {
  atMs: number
  /** The end of the last gap, or the last start of a coordinator. */
  gapAtMs: number
  /** Until when agents have time to come back after it; null: they have had theirs. */
  graceUntilMs: number | null
}

/** A time in which agents come back, and people too. What came before its begin may be news to nobody yet. */
export interface Interval {
  /** By the clock of the database, in milliseconds since the epoch; Infinity: it has not begun, an outage may last. */
  gapAtMs: number
  sinceMs: number
  leftMs: number
}

/**
 * The time after an outage of ours, or after a start, in which agents come back: leases last until its end, and so long
 * nothing is decided by clocks that nobody could have met. Known from our own pulses, without asking the database.
 */
export interface Grace {
  note(pulse: Noted): void
  /** Undefined: there is none. */
  now(): Interval | undefined
}

/** When to look again whether a pulse has come. */
const AGAIN_MS = 1000
/** For so long one is waited for: it may be held up alone, and others may be there. */
const MOST_MS = 300_000

export function createGrace(config: Pick<Config, 'sweepMs'>, clock = (): number => performance.now()): Grace {
  const limitMs = pulseLimitMs(config)
  let last: (Noted & { heardAt: number }) | undefined
  let missedSince: number | undefined

  return {
    note(pulse) {
      last = { ...pulse, heardAt: clock() }
      missedSince = undefined
    },
    now() {
      const sinceHeardMs = last ? clock() - last.heardAt : Infinity
      if (!last || sinceHeardMs > limitMs) {
        missedSince ??= clock()
        if (clock() - missedSince > MOST_MS) return undefined
        return { gapAtMs: Infinity, sinceMs: 0, leftMs: AGAIN_MS }
      }
      const nowMs = last.atMs + sinceHeardMs
      const leftMs = (last.graceUntilMs ?? -Infinity) - nowMs
      return leftMs > 0 ? { gapAtMs: last.gapAtMs, sinceMs: nowMs - last.gapAtMs, leftMs } : undefined
    },
  }
}
