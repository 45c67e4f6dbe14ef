/** A tick waits for agents that are out of reach for so long: twice a lease, and some time for who takes runs then. */
export const MOST_HELD_MS = 180_000

/** The time in which ticks of a schedule have waited for agents. */
export interface HeldTime {
  from: number
  to: number
}

/** For a tick that was due then nobody is late: by so much it waited for an agent. */
export const heldMs = (held: HeldTime | null, { dueAt }: { dueAt: number }): number =>
  held === null ? 0 : Math.max(0, held.to - Math.max(dueAt, held.from))

export function heldTimeOf(row: { heldSince: number | null; dueAt: number | null; now: number }): HeldTime | null {
  const { heldSince: from, dueAt, now } = row
  return from === null || dueAt === null ? null : { from, to: Math.min(dueAt, now, from + MOST_HELD_MS) }
}
