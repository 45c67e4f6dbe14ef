import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Config } from '../../config.ts'
import type { Db } from '../../db/client.ts'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Backlog } from './backlog.ts'
import { createFailover } from './failover.ts'
import type { ClockSetBack } from './clock-set-back.ts'
import type { Grace } from './grace.ts'
import * as store from '../store/pulse.ts'

/** Three times the longest that an agent waits before it tries again to connect. */
const FLOOR_MS = 90_000

type PulseDeps = Parameters<typeof createFailover>[0] & {
  db: Db
  config: Config
  log: Log
  metrics: Metrics
  databaseClock: Pick<DatabaseClock, 'look'>
  clockSetBack: Pick<ClockSetBack, 'found'>
  grace: Pick<Grace, 'note'>
  backlog: Pick<Backlog, 'isOwn' | 'ofOthers' | 'works'>
}

/**
 * Returns a function that must run before leases are judged. Leases stand still while nobody could renew them: an
 * outage of ours takes no run from an agent that still holds it. A start is the same case, for agents have to find a
 * coordinator first.
 */
export function createPulse(deps: PulseDeps, clock = (): number => performance.now()): () => Promise<void> {
  const { config, log, metrics, backlog } = deps
  const limitMs = store.pulseLimitMs(config)
  const terms = {
    limitMs,
    toleranceMs: limitMs / store.SWEEPS_LATE,
    offerMs: config.offerMs,
    floorMs: Math.min(FLOOR_MS, config.amnestyMs),
    amnestyMs: config.amnestyMs,
  }
  let last: { atMs: number; gaps: number; sentAt: number; heardAt: number } | undefined
  const noteServer = createFailover(deps)
  let saidLateAtMs: number | undefined

  return async () => {
    const sentAt = clock()
    const own = last && {
      atMs: last.atMs,
      gaps: last.gaps,
      sinceSentMs: sentAt - last.sentAt,
      sinceHeardMs: sentAt - last.heardAt,
    }
    const isLate = backlog.isOwn()
    const learn = deps.databaseClock.look()
    const pulse = await store.pulse(deps.db, { ...terms, own, isLate })
    learn(pulse.atMs)
    const { atMs, gaps, forwardMs, backMs, lengthened, passedOver, lateAtMs } = pulse
    deps.grace.note(pulse)
    noteServer(pulse)
    backlog.works()
    // What lies ahead is of a clock that was set back since.
    if (lateAtMs !== null && lateAtMs <= atMs && lateAtMs !== saidLateAtMs) backlog.ofOthers(atMs - lateAtMs)
    if (isLate) saidLateAtMs = atMs
    last = { atMs, gaps, sentAt, heardAt: clock() }
    // Seen by each coordinator, though one alone makes up for it: that one may be gone before all is put right.
    const isSetBack = own !== undefined && atMs - own.atMs < own.sinceHeardMs - terms.toleranceMs
    // So may those that saw it before this one started.
    if (isSetBack || backMs < 0 || own === undefined) deps.clockSetBack.found()
    const isGap = forwardMs > 0 || backMs < 0
    if (isGap) metrics.leaseGap(Math.max(forwardMs, -backMs))
    if (isGap || lengthened > 0 || passedOver > 0)
      log.warn('leases.lengthened', {
        gapMs: Math.round(forwardMs),
        setBackMs: Math.round(-backMs),
        atStart: own === undefined,
        placements: lengthened,
        passedOver,
      })
    probe('pulse.done', { lengthened, passedOver, forwardMs, backMs })
  }
}
