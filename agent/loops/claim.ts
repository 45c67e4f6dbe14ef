import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Deps } from '../deps.ts'
import { execute } from '../run/execute.ts'
import { Live } from '../run/live.ts'

/** The coordinator takes an offer back after 15 s; what it confirms later than this we would not dare to begin. */
const ACCEPT_MS = 12_000
const BACKOFF = { firstMs: 250, capMs: 30_000 }
const LONGEST_POLL_MS = 25_000
/** An answer without work should have been waited for; if it was not, something between us and the coordinator is odd. */
const HASTY_MS = 50

/** Asks for as much work as there are free slots, takes it, and asks again; one poll at a time. */
export async function claimLoop(deps: Deps, signal: AbortSignal): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    const free = deps.config.slots - deps.lives.size
    if (free <= 0 || !deps.link.isReady) {
      await deps.claimBell.wait(signal)
      continue
    }
    try {
      const isHasty = await pollOnce(deps, free, signal)
      failures = isHasty ? failures + 1 : 0
    } catch (error) {
      if (signal.aborted) return
      deps.log.warn('claims.failed', { failures, reason: error instanceof Error ? error.message : String(error) })
      failures += 1
    }
    if (failures > 0) await pause(backoffMs(failures, BACKOFF), signal)
  }
}

async function pollOnce(deps: Deps, free: number, signal: AbortSignal): Promise<boolean> {
  const askedAt = performance.now()
  const waitMs = Math.min(deps.settings.current.pollMs, LONGEST_POLL_MS)
  const offers = await deps.rest.claims(free, waitMs, signal)
  if (offers.length > 0) take(deps, offers.slice(0, free))
  return offers.length === 0 && waitMs > HASTY_MS && performance.now() - askedAt < HASTY_MS
}

/** From the answer to the sending of `accept` there is one write into the spool, and nothing that waits. */
function take(deps: Deps, offers: Offer[]): void {
  const fresh = offers.filter(({ run, epoch }) => !deps.spool.find(run, epoch))
  deps.spool.open(fresh.map(({ run, epoch }) => [run, epoch] as const))
  const lives = fresh.map((offer) => new Live(offer, ACCEPT_MS))
  for (const live of lives) deps.lives.add(live)
  sendAccepts(deps, lives)
  for (const live of lives) void runToItsEnd(deps, live)
}

/** Also for those whose `accept` may have been lost with a connection. */
export function sendAccepts(deps: Pick<Deps, 'link'>, lives: readonly Live[]): void {
  const open = lives.filter((live) => !live.isAnswered)
  if (open.length === 0) return
  const now = performance.now()
  const runs = open.map(({ offer }) => [offer.run, offer.epoch] as const)
  if (!deps.link.send({ t: 'accept', runs })) return
  for (const live of open) live.acceptSentAt = Math.min(live.acceptSentAt, now)
}

async function runToItsEnd(deps: Deps, live: Live): Promise<void> {
  const { run, epoch } = live.offer
  try {
    await execute(deps, live)
  } catch (error) {
    deps.log.error('run.broken', { run, epoch, error })
    const reason = 'the agent could not execute it; the log of the agent says why'
    void deps.spool.append(run, epoch, [['end', Date.now(), { how: 'lost', reason }, 0]])
  } finally {
    deps.lives.remove(live)
  }
}
