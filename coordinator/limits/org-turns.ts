import { Fault } from '@windlass/shared/errors.ts'
import { createSeats } from './seats.ts'

/**
 * Bounds reads whose cost grows with what an org has: lists, and what counts. All of them share a dozen connections,
 * and two dozen lists over 200,000 queued runs of one org kept the others waiting for 13 s.
 */
export interface OrgReads {
  /** OrgReads when the org has a seat. Throws RATE_LIMITED when it has waited too long for one. */
  run<T>(orgId: string, read: () => Promise<T> | T): Promise<T>
}

/** At once. */
const SEATS = { org: 2, all: 8 }
/** As long as callers wait for a database that is away. */
const PATIENCE_MS = 20_000
const RETRY_MS = 1000

export function createOrgReads({ seats = SEATS, patienceMs = PATIENCE_MS } = {}): OrgReads {
  const places = createSeats(seats)
  return {
    async run(orgId, read) {
      const leave = await inTime(places.take(orgId), patienceMs)
      try {
        return await read()
      } finally {
        leave()
      }
    },
  }
}

/** A seat that comes too late is left at once. */
async function inTime(seat: Promise<() => void>, patienceMs: number): Promise<() => void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, patienceMs, undefined)))
  const leave = await Promise.race([seat, late])
  clearTimeout(timer)
  if (leave) return leave
  void seat.then((tooLate) => tooLate())
  throw new Fault(
    'RATE_LIMITED',
    { scope: 'org_reads', limit: SEATS.org, retryAfterMs: RETRY_MS },
    'Other lists of this org are being read, and have taken long. Ask for fewer of them at once.',
  )
}
