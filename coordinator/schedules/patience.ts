import { probe } from '@windlass/shared/probe.ts'
import { LIMITED_AT_ONCE } from '../engine/commit/org-line.ts'

/**
 * How long ticks that are decided wait in a pass for those that are not. A few orgs whose ticks take long have their
 * turns behind the pass at once. Where many are late it is the machine or the database, as a rule, and to wait for all
 * of them together is far shorter than so many turns.
 */
export interface Patience {
  /** A pass begins that decides the ticks of so many orgs. */
  begin(orgs: number): PassWait
}

export interface PassWait {
  /** Resolves when the others wait no longer for those that are undecided. */
  over: Promise<void>
  isOver(): boolean
  /** One of the orgs is decided. */
  decided(): void
  /** The pass waits for nobody any more. */
  end(): void
}

/** For which each pass waits. A millisecond for each tick is usual. */
const FIRST_MS = 50
/** For which a pass waits beyond that, at most, while more orgs are undecided than have a turn at once. */
const MOST_MS = 500
/** Behind the pass an org takes 40 to 120 ms of one of three seats. */
const TURN_MS = 20
/** Share of the time that passes may wait for orgs which are slow by themselves, be they ever so many. */
const SHARE = 0.1

export function createPatience(now: () => number = () => performance.now()): Patience {
  const purse = createPurse(now)
  return {
    begin(orgs) {
      const { promise: over, resolve } = Promise.withResolvers<void>()
      let undecided = orgs
      let isOver = false
      /** The wait beyond the first. */
      let more: { since: number; decided: number } | undefined
      const isForFew = () => undecided <= LIMITED_AT_ONCE
      const end = () => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        if (more) purse.spend(now() - more.since, more.decided)
        resolve()
      }
      let timer = setTimeout(() => {
        if (isForFew()) return end()
        more = { since: now(), decided: 0 }
        timer = setTimeout(end, purse.left())
        probe('schedules.waiting', { undecided })
      }, FIRST_MS)
      return {
        over,
        isOver: () => isOver,
        decided() {
          undecided--
          if (!more) return
          more.decided++
          if (isForFew()) end()
        },
        end,
      }
    },
  }
}

/**
 * What passes may wait beyond their first time. An org that is decided meanwhile gives back what its turn behind would
 * have taken: passes wait as often as the machine is slow, but not time and again for a handful of slow orgs.
 */
function createPurse(now: () => number) {
  let [ms, at] = [MOST_MS, now()]

  const left = () => Math.min(MOST_MS, ms + (now() - at) * SHARE)

  return {
    left,
    spend(spentMs: number, decided: number): void {
      ms = Math.min(MOST_MS, Math.max(0, left() - spentMs + decided * TURN_MS))
      at = now()
    },
  }
}
