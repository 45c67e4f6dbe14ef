import { Fault } from '@windlass/shared/errors.ts'
import type { Revocable } from '../actor.ts'
import { isLongAgo } from '../stay.ts'
import { createSeats } from './seats.ts'
import { createSlowOrgs } from './slow-orgs.ts'

/** Bounds what one org does at once of one kind, so that a dozen connections for all orgs are not held by one. */
export interface OrgTurns {
  /**
   * Acts when the org has a seat. Throws RATE_LIMITED when it has waited too long for one, and the reason of `gone`
   * when that is aborted first. The credential may be lost while others have their turns: three slow requests of its
   * own org are enough.
   */
  run<T>(orgId: string, asked: Revocable & { gone?: AbortSignal }, act: () => Promise<T> | T): Promise<T>
  /** Acts when the org has a seat at once. False: it has none, and nothing was done. */
  runIfFree(orgId: string, act: () => Promise<unknown>): Promise<boolean>
}

interface Kind {
  scope: string
  /**
   * At once, of an org and of all. Reads, calls and changes leave two of the twelve connections to sweeps, timers,
   * triggers of limited runs, stops and registrations, most of which are short.
   */
  seats: { org: number; all: number }
  /**
   * One of the seats is kept for orgs whose acts were short of late: two orgs with lists over 100,000 queued runs each
   * had all four, and those of a third, of 10 ms each, took 10 s.
   */
  keepsOne?: boolean
  message: string
}

/**
 * Reads whose cost grows with what an org has: lists, and what counts. Two dozen lists over 200,000 queued runs of one
 * org kept the others waiting for 13 s.
 */
export const READS: Kind = {
  scope: 'org_reads',
  seats: { org: 3, all: 4 },
  keepsOne: true,
  message: 'Other lists of this org are being read, and have taken long. Ask for fewer of them at once.',
}

/**
 * All else that callers ask for, but for triggers and single runs, which share statements. Each holds a connection, and
 * may wait there for the lock of a run: 600 at once kept the others waiting for 10 s.
 */
const CALLS: Kind = {
  scope: 'org_calls',
  seats: { org: 3, all: 4 },
  keepsOne: true,
  message: 'Other requests of this org are under way, and have taken long. Send fewer of them at once.',
}

/**
 * What ends or holds something: see `stops` in shared/ops/op.ts. A stolen key of a member had the seats for calls, with
 * three requests in a second whose inputs were judged for long, and its own revocation got 429. An org has two: the
 * cancel of a large tree of runs keeps one for 5 s.
 */
const STOPS: Kind = {
  scope: 'org_stops',
  seats: { org: 2, all: 3 },
  keepsOne: true,
  message: 'Other requests of this org that end or pause something are under way. Send fewer of them at once.',
}

/**
 * Changes that take the lock of their org. Each that waits for it holds a connection: a hundred of one org had all of
 * them, and heartbeats of others had no answer for longer than their agents may be silent.
 */
const CHANGES: Kind = {
  scope: 'org_changes',
  seats: { org: 1, all: 2 },
  message:
    'Other changes of environments, variables and secrets of this org are under way. Make fewer of them at once.',
}

/** What runs ask for with their tokens. 600 requests of one run at once kept triggers of others waiting for 1.5 s. */
const PROGRAMS: Kind = {
  scope: 'org_programs',
  seats: { org: 2, all: 4 },
  keepsOne: true,
  message: 'Other runs of this org are asking, and have taken long. Ask less often.',
}

/**
 * Cancels of what runs have called, while whoever cancelled them waits. What finds no seat is left to the job: 300
 * trees at once kept the others waiting for 10 s.
 */
const DESCENTS: Kind = {
  scope: 'org_descents',
  seats: { org: 1, all: 2 },
  message: 'Other trees of runs are being cancelled.',
}

/**
 * Agents that register. Each locks its token, which others may have too: 300 at once with one token had all
 * connections, and the triggers of others waited for 5 s.
 */
const REGISTRATIONS: Kind = {
  scope: 'org_registrations',
  seats: { org: 1, all: 2 },
  message: 'Many other agents are registering. Try again in a second, as agents do by themselves.',
}

/**
 * Deliveries whose payload, or what is wanted of them, is large, and those with which filters compare much. Each is
 * read in one go: six at once of small objects kept the others waiting for 0.8 s. All others, which are most, take no
 * turn.
 */
const DELIVERIES: Kind = {
  scope: 'org_deliveries',
  seats: { org: 2, all: 4 },
  keepsOne: true,
  message: 'Other large or costly deliveries of this org are being read, and have taken long. Send it again.',
}

/**
 * What batches of runs look up before they start: which of the environments and versions there are that their items
 * name. 300 batches at once, of a thousand names each, kept a trigger of another org waiting for 17 s.
 */
const BATCHES: Kind = {
  scope: 'org_batches',
  seats: { org: 1, all: 3 },
  keepsOne: true,
  message: 'Other batches of this org are being read, and have taken long. Send fewer of them at once.',
}

/** As long as callers wait for a database that is away. */
const PATIENCE_MS = 20_000
const RETRY_MS = 1000

export function createOrgTurns({ scope, seats, keepsOne, message }: Kind, patienceMs = PATIENCE_MS): OrgTurns {
  const seating = createSeats(seats, keepsOne ? createSlowOrgs() : undefined)
  const tooLong = () => new Fault('RATE_LIMITED', { scope, limit: seats.org, retryAfterMs: RETRY_MS }, message)
  return {
    async run(orgId, asked, act) {
      const since = performance.now()
      const leave = await seating.takeInTime(orgId, patienceMs, 1, asked.gone)
      try {
        asked.gone?.throwIfAborted()
        if (!leave) throw tooLong()
        if (isLongAgo(since)) await asked.stay()
        asked.gone?.throwIfAborted()
        return await act()
      } finally {
        leave?.()
      }
    },
    async runIfFree(orgId, act) {
      const leave = seating.takeFree(orgId)
      if (!leave) return false
      try {
        await act()
        return true
      } finally {
        leave()
      }
    },
  }
}

/** Those of one coordinator. */
export function openOrgTurns() {
  return {
    orgReads: createOrgTurns(READS),
    orgCalls: createOrgTurns(CALLS),
    orgStops: createOrgTurns(STOPS),
    orgChanges: createOrgTurns(CHANGES),
    orgPrograms: createOrgTurns(PROGRAMS),
    orgDescents: createOrgTurns(DESCENTS),
    orgDeliveries: createOrgTurns(DELIVERIES),
    orgBatches: createOrgTurns(BATCHES),
    orgRegistrations: createOrgTurns(REGISTRATIONS),
  }
}
