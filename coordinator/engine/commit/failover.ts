import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import type { Pulse } from '../store/pulse.ts'

interface FailoverDeps {
  log: Log
  /** Ends the connections of all agents, which come again. */
  sockets: { letGo(reason: string): Promise<void> }
  answeredMs?: number
}

/** By then heartbeats that waited for the database are answered: nobody is let go who is near its fence. */
const ANSWERED_MS = 3000

const ADVICE =
  'A server without the last commits of the one before has taken over. That is a restore: stop all coordinators, ' +
  'say `windlass admin restored`, and start them.'

/**
 * Another server may have taken over, with or without what was committed last. Agents that stay connected rely on what
 * they were acknowledged: a run would wait for ever for a timer that is gone. Their next hello tells them how far they
 * were taken, and they send the rest again. So they are let go when another server answers, or this one was started
 * anew. Told of each pulse of this coordinator.
 */
export function createFailover(deps: FailoverDeps): (pulse: Pulse) => void {
  const { log, sockets, answeredMs = ANSWERED_MS } = deps
  let last: Pulse | undefined

  async function letGo(reason: string): Promise<void> {
    await delay(answeredMs, undefined, { ref: false })
    await sockets.letGo(reason)
  }

  return (pulse) => {
    const own = last
    last = pulse
    if (!own) return
    if (isGone(own, pulse)) {
      log.error('database.commits.lost', { since: pulse.before.atMs, until: own.atMs, advice: ADVICE })
      void letGo('the database has lost what agents told last')
    } else if (pulse.serverAtMs !== own.serverAtMs) {
      log('database.server.changed', { startedAt: pulse.serverAtMs })
      void letGo('the database was started anew, or another server has taken over')
    }
  }
}

/**
 * Whether that pulse of ours was not there any more. Each pulse follows the one before it, both in time and in numbers
 * of transactions. A clock that was set back turns times about, but no numbers.
 */
function isGone(own: Pulse, { before }: Pulse): boolean {
  const ahead = (own.xid - before.xid) >>> 0
  return before.atMs < own.atMs && ahead > 0 && ahead < 2 ** 31
}
