import type { Time } from '../../run/program/compute-clock.ts'

interface OwnTime extends Time {
  /** Everything comes when it is due. */
  pass(ms: number): void
  /** The one who counts stands still meanwhile: what is due comes late. */
  stall(ms: number): void
}

/** Time that passes as a test says it. */
export function aTime(): OwnTime {
  let now = 0
  let due: { at: number; act: () => void }[] = []

  function act(): void {
    const over = due.filter(({ at }) => at <= now)
    due = due.filter(({ at }) => at > now)
    for (const { act } of over) act()
  }

  return {
    now: () => now,
    later(ms, act) {
      const mine = { at: now + ms, act }
      due.push(mine)
      return () => (due = due.filter((each) => each !== mine))
    },
    pass(ms) {
      const end = now + ms
      for (let next = now; next < end;) {
        next = Math.min(end, ...due.map(({ at }) => at))
        now = Math.max(now, next)
        act()
      }
    },
    stall(ms) {
      now += ms
      act()
    },
  }
}
