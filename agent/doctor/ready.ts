import { daemonOf } from '../support/daemon.ts'
import { lastStatus } from '../support/last-status.ts'
import { fail, ok, skipped, warn } from './finding.ts'
import type { Answer } from './finding.ts'

/** Written at least each 10 s by an agent that is well. */
const STALE_MS = 60_000

/** Whether the agent that runs takes work, by its own word, and who or what keeps it from that. */
export function askReady(home: string): Answer {
  const daemon = daemonOf(home)
  const status = lastStatus(home)
  if (daemon.state !== 'running' || status?.pid !== daemon.pid)
    return skipped('it does not run, or has said nothing yet')
  const [first, ...more] = status.unready
  if (first) {
    const others = more.length === 0 ? '' : ` (and ${more.map(({ check }) => check).join(', ')})`
    return fail(`It takes no work: ${first.check}: ${first.message}${others}`, 'mend that; it goes on by itself then')
  }
  const ageMs = Date.now() - status.at
  if (ageMs > STALE_MS)
    return warn(
      `It has said nothing for ${Math.round(ageMs / 1000)} s.`,
      'windlass agent logs; if it hangs, restart it',
    )
  if (status.connection.state !== 'connected')
    return warn(`It is ${status.connection.state} to the coordinator.`, 'see what is wrong with the way there, below')
  const { state, reason, isLeaving } = status.intake
  if (isLeaving) return warn('It is being stopped and takes no work.', 'start it again when it has ended')
  if (state === 'open') return ok('it takes work')
  const why = reason === '' ? '' : `: ${reason}`
  return warn(`It is ${state}${why}.`, `windlass runners resume ${status.runner}, for who may, gives it work again`)
}
