/** Of a run that is throttled: it takes its turn among those with the same key when it would enter the queue. */
export interface Throttle {
  key: string
  limit: number
  perMs: number
}

/** What a run waits for before it enters the queue, besides a delay that was asked for: JSON, with its timer. */
export interface Holds {
  /** With `isTaken` the timer is its turn; without it the turn is taken when the timer is due. */
  throttle?: Throttle & { isTaken: boolean }
  /** Further calls are merged into it: so many were. */
  debounce?: { merged: number }
}

export function readHolds(text: string | null): Holds {
  return text === null ? {} : (JSON.parse(text) as Holds)
}

/** Null where nothing but time is waited for. */
export function writeHolds(holds: Holds): string | null {
  return holds.throttle || holds.debounce ? JSON.stringify(holds) : null
}

/**
 * When runs of a throttle may start: never more than `limit` within any time of the length `perMs`, and in the order of
 * their arrival. `startOf` tells the earlier starts by their numbers, and is told the new ones; all in milliseconds.
 */
export function turnOf(startOf: Map<number, number>, n: number, { limit, perMs }: Throttle, now: number): number {
  const before = startOf.get(n - limit)
  const start = Math.max(now, startOf.get(n - 1) ?? now, before === undefined ? now : before + perMs)
  startOf.set(n, start)
  return start
}

/** Another rule begins anew, so the rule is part of the key; `by`: of what else the throttle is. */
export const throttleKey = (by: string, { limit, perMs }: Omit<Throttle, 'key'>): string => `${by} ${limit}:${perMs}`

export function ruleOfKey(key: string): Omit<Throttle, 'key'> | null {
  const [, limit, perMs] = / (\d+):(\d+)$/.exec(key) ?? []
  return limit === undefined ? null : { limit: Number(limit), perMs: Number(perMs) }
}

/**
 * Turns of runs that wait, the earliest first, none of them later than the throttle explains: `perMs` from now on for
 * each `limit` of them. What is later was given by a clock that was ahead. Where any two that are `limit` apart lie
 * `perMs` apart they do so afterwards.
 */
export function turnsAtMost(turns: readonly number[], { limit, perMs }: Omit<Throttle, 'key'>, now: number): number[] {
  return turns.map((turn, i) => Math.min(turn, now + (Math.floor(i / limit) + 1) * perMs))
}
