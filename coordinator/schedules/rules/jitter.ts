import { createHash } from 'node:crypto'

/**
 * By how much a tick is put off, in milliseconds: the same on any coordinator, and at most half of the gap to the next
 * tick, so that no tick overtakes another.
 */
export function jitterOf(ask: { schedule: string; jitterMs: number; at: number; nextAt: number | null }): number {
  const { schedule, jitterMs, at, nextAt } = ask
  if (jitterMs === 0) return 0
  const most = nextAt === null ? jitterMs : Math.min(jitterMs, Math.floor((nextAt - at) / 2))
  const hash = createHash('sha256').update(`${schedule} ${at}`).digest().readUInt32BE(0)
  return Math.floor((hash / 2 ** 32) * (most + 1))
}
