import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { heldForMs } from './lease/fence.ts'
import type { Link } from './link/link.ts'
import type { Spool } from './run/spool/spool.ts'
import type { Urgency } from './stop.ts'

/** Where the stop is to be quick. */
const HURRIED_MS = 300
/** Where no lease holds any more: nothing is gained for a run, but its last words may be taken all the same. */
const LEAST_MS = 3000
const SILENT_MS = 1000
const LOG_EVERY_MS = 30_000
/** The coordinator answers heartbeats, and takes nothing of what it is told. */
const STUCK_MS = 60_000
/** In a millisecond, of the slowest line that serves. What is long is acknowledged as a whole. */
const LEAST_CHARS = 6
/** Of what is acknowledged as a whole; the largest output has 1 MiB by default. */
const LONGEST_CHARS = 4 * 1024 * 1024
/** The coordinator is away. Pools may leave runs with silent agents for a day; who stops one does not wait so long. */
const AWAY_MS = 300_000
const LOGGED_RUNS = 20

type Needs = Parameters<typeof heldForMs>[0] & {
  link: Pick<Link, 'isReady'>
  spool: Pick<Spool, 'held' | 'stats'>
  log: Log
}

/**
 * Waits until the coordinator has taken what was said of runs that have ended here, or they would be executed once
 * more: it may be away for a moment, or the line be slow, and this host gone for good. Not longer than leases hold.
 * Polled: it happens once in an agent's life, and a notification would burden every acknowledgement.
 */
export async function untilReported(
  deps: Needs,
  { kill }: Pick<Urgency, 'kill'>,
  clock = (): number => performance.now(),
): Promise<void> {
  const { spool, log } = deps
  const since = clock()
  const passedMs = () => clock() - since
  const isGoingOn = progressOf(deps, clock)
  // Each heartbeat that is answered lengthens them.
  const leftMs = () => Math.max(LEAST_MS - passedMs(), heldForMs(deps))
  const runs = () => spool.held().map(({ run }) => run)
  const facts = () => ({ count: runs().length, runs: runs().slice(0, LOGGED_RUNS) })
  let sayAt = SILENT_MS
  const isWaiting = () => (kill.aborted ? passedMs() < HURRIED_MS : leftMs() > 0 && isGoingOn())
  while (spool.held().length > 0 && isWaiting()) {
    await pause(10)
    if (passedMs() < sayAt) continue
    sayAt += LOG_EVERY_MS
    log('agent.telling', { ...facts(), advice: 'a third signal ends it without that' })
  }
  if (spool.held().length === 0) return
  const advice =
    'start an agent with this state folder again: until it has told how they ended they may be executed anew'
  log.warn('agent.untold', { ...facts(), advice })
}

/** Whether some of it was taken a short while ago, as time that could be used for it goes. */
function progressOf({ spool, link }: Pick<Needs, 'spool' | 'link'>, clock: () => number): () => boolean {
  let least = Infinity
  let at = clock()
  let spent = { ready: 0, away: 0 }
  return () => {
    const { unacknowledged } = spool.stats()
    if (unacknowledged < least) spent = { ready: 0, away: 0 }
    least = Math.min(least, unacknowledged)
    // A connection that is closed again and again is both in turn.
    spent[link.isReady ? 'ready' : 'away'] += clock() - at
    at = clock()
    return spent.away < AWAY_MS && spent.ready < STUCK_MS + Math.min(unacknowledged, LONGEST_CHARS) / LEAST_CHARS
  }
}
