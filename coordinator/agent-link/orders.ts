import type { Wake } from '@windlass/shared/wire/agent.ts'
import { tellRuns, tellWakes } from '../dispatch/wakes.ts'
import { tellCancels } from '../engine/commit/leases.ts'
import type { Bell } from '../events/bell.ts'
import { createLooks, type LookDeps } from './looks.ts'

/** What agents are told without having asked, here or by way of the coordinator that they are connected to. */
export interface Orders {
  /** What is to be cancelled. */
  tellCancels: (runnerId: string) => Promise<void>
  /** What one of its runs waited for. */
  tellWake(runnerId: string, wake: Wake): void
  /** Looks for everything that its programs wait for and have not been given. */
  tellWakes(runnerId: string): void
  /** All of that, to those that are connected here. With its next heartbeat an agent hears of it in any case. */
  tellAll: (runnerIds: readonly string[]) => void
  /** The same, to everybody who is connected here. */
  tellEverybody: () => void
}

/** Looks at once for those who are named. */
const MOST_NAMED = 2

export function createOrders(deps: LookDeps & { bell: Bell }): Orders {
  const { sockets, bell, log } = deps
  const isHere = (runnerId: string) => sockets.orgOf(runnerId) !== undefined

  const failed = (error: unknown) => log.warn('orders.failed', { error })

  // Of its own: who is named does not wait for all others of the org.
  const lookForEverybody = createLooks(deps, 1)

  return {
    tellAll: createLooks(deps, MOST_NAMED),
    tellEverybody: () => lookForEverybody(sockets.ids()),
    async tellCancels(runnerId) {
      const orgId = sockets.orgOf(runnerId)
      if (orgId === undefined) return bell.ring('runner', runnerId)
      // Cancels that come one by one are looked for together.
      await sockets.cancels.share(runnerId, orgId, () => tellCancels(deps, [runnerId]))
    },
    tellWake(runnerId, wake) {
      if (tellRuns(sockets, runnerId, [wake])) return
      if (isHere(runnerId)) void tellWakes(deps, runnerId).catch(failed)
      else bell.ring('runner', runnerId)
    },
    tellWakes(runnerId) {
      if (isHere(runnerId)) void tellWakes(deps, runnerId).catch(failed)
      else bell.ring('runner', runnerId)
    },
  }
}
