import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { heldForMs } from './lease/fence.ts'
import type { Spool } from './run/spool/spool.ts'
import type { Urgency } from './stop.ts'

/** Where the stop is to be quick. */
const HURRIED_MS = 300
/** Where no lease holds any more: nothing is gained for a run, but its last words may be taken all the same. */
const LEAST_MS = 3000
const SILENT_MS = 1000
const LOGGED_RUNS = 20

type Needs = Parameters<typeof heldForMs>[0] & { spool: Pick<Spool, 'held'>; log: Log }

/**
 * Waits until the coordinator has taken what was said of runs that have ended here, or they would be executed once
 * more: it may be away for a moment, and this host for good. Not longer than leases hold. Polled: it happens once in an
 * agent's life, and a notification would burden every acknowledgement.
 */
export async function untilReported(deps: Needs, { kill }: Pick<Urgency, 'kill'>): Promise<void> {
  const { spool, log } = deps
  const since = performance.now()
  const mostMs = Math.max(LEAST_MS, heldForMs(deps))
  const passedMs = () => performance.now() - since
  const runs = () => spool.held().map(({ run }) => run)
  const facts = () => ({ count: runs().length, runs: runs().slice(0, LOGGED_RUNS) })
  let isSaid = false
  while (spool.held().length > 0 && passedMs() < (kill.aborted ? HURRIED_MS : mostMs)) {
    await pause(10)
    if (isSaid || passedMs() < SILENT_MS) continue
    isSaid = true
    log('agent.telling', { ...facts(), leftMs: Math.round(mostMs - passedMs()) })
  }
  if (spool.held().length === 0) return
  const advice =
    'start an agent with this state folder again: until it has told how they ended they may be executed anew'
  log.warn('agent.untold', { ...facts(), advice })
}
