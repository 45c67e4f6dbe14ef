/** Coordinators that do nothing but pulses, over a database in which time passes when a test says so. */
import assert from 'node:assert/strict'
import { createLog } from '@windlass/shared/log.ts'
import type { Db } from '../../db/client.ts'
import { createPulse } from '../../engine/commit/pulse.ts'
import { overdue } from '../../engine/store/placements.ts'
import { pulseLimitMs } from '../../engine/store/pulse.ts'
import { aRunningAgent, type Held } from './agent.ts'
import { aCoordinatorOfItsOwn, aRun } from './coordinator.ts'
import { makeClockMovable, moveClock } from './database-clock.ts'
import { aWorkflow } from './workflow.ts'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const LEASE_MS = 75 * SECOND
export const FLOOR_MS = 90 * SECOND
export const OFFER_MS = 15 * SECOND
export const SWEEP_MS = 5 * SECOND
/** What passes between two statements of a test on a busy machine. */
export const SLACK_MS = 10 * SECOND

export const about = (ms: number | null, expected: number, slack = SLACK_MS) =>
  assert.ok(ms !== null && Math.abs(ms - expected) < slack, `${ms}, not about ${expected}`)

interface PulseLine {
  gapMs: number
  setBackMs: number
  placements: number
  passedOver: number
}

export type Pulses = Awaited<ReturnType<typeof createPulses>>

/** Nobody sweeps. */
export async function createPulses() {
  const c = await aCoordinatorOfItsOwn({}, { prepare: makeClockMovable })
  await aWorkflow(c, { slug: 'any' })
  let passedMs = 0

  /** For everybody: the database and all coordinators. */
  async function pass(ms: number): Promise<void> {
    passedMs += ms
    await moveClock(c.db, ms)
  }

  /** A coordinator that does nothing but pulses. */
  async function aCoordinatorAmong(more: { amnestyMs?: number; isStarting?: boolean; db?: Db } = {}) {
    const lines: PulseLine[] = []
    const log = createLog({}, 'debug', { write: (line) => void lines.push(JSON.parse(line) as PulseLine) })
    const { amnestyMs = 5 * MINUTE, isStarting = false, db = c.deps.db } = more
    const config = { ...c.deps.config, sweepMs: SWEEP_MS, offerMs: OFFER_MS, amnestyMs }
    const act = createPulse({ ...c.deps, db, config, log }, () => performance.now() + passedMs)
    if (!isStarting) await act()
    /** Answers what it said of leases that it lengthened. */
    return async () => {
      lines.length = 0
      await act()
      return lines[0]
    }
  }

  /** As if it had been renewed just now. */
  async function leaseOf({ offer }: Held, ms: number): Promise<void> {
    await c.db`
      update placements
      set lease_expires_at = shifted.now() + ${ms} * interval '1 millisecond', renewed_at = shifted.now(),
          lengthened_ms = null
      where run_id = ${offer.run}`
  }

  return {
    c,
    pass,
    aCoordinatorAmong,
    aStart: async (more = {}) => (await aCoordinatorAmong({ ...more, isStarting: true }))(),

    /** Longer than a gap or a start is remembered. */
    calm: async (pulse: () => Promise<unknown>): Promise<void> => {
      for (let i = 0; i < 25; i++) {
        await pass(SWEEP_MS)
        await pulse()
      }
    },

    held: async (): Promise<Held> => {
      await aRun(c, { workflow: 'any' })
      const one = await aRunningAgent(c)
      c.onStop(() => one.agent.close())
      await leaseOf(one, LEASE_MS)
      return one
    },

    leaseOf,

    remaining: async (run: string): Promise<{ leaseMs: number; lengthenedMs: number | null }> => {
      const [row] = await c.db<[{ leaseMs: number; lengthenedMs: number | null }]>`
        select (extract(epoch from lease_expires_at - shifted.clock_timestamp()) * 1000)::float8 as lease_ms,
               lengthened_ms::float8
        from placements
        where run_id = ${run}`
      return row
    },

    late: async (): Promise<string[]> => {
      const rows = await overdue(c.deps.db, OFFER_MS, pulseLimitMs({ sweepMs: SWEEP_MS }))
      return rows.map(({ runId }) => runId)
    },
  }
}
