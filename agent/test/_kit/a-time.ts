import type { Time } from '../../run/program/compute-clock.ts'

/** Time that passes as a test says it. */
export function aTime(): Time & { pass(ms: number): void } {
  let now = 0
  let due: { at: number; act: () => void }[] = []
  return {
    now: () => now,
    later(ms, act) {
      const mine = { at: now + ms, act }
      due.push(mine)
      return () => (due = due.filter((each) => each !== mine))
    },
    pass(ms) {
      now += ms
      const over = due.filter(({ at }) => at <= now)
      due = due.filter(({ at }) => at > now)
      for (const { act } of over) act()
    },
  }
}
