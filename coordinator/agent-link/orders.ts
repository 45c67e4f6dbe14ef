import type { Log } from '@windlass/shared/log.ts'
import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../db/client.ts'
import { tellWakes } from '../dispatch/wakes.ts'
import { tellCancels } from '../engine/commit/leases.ts'
import type { Bell } from '../events/bell.ts'
import { tellIntake } from '../runners/intake.ts'
import type { Versions } from '../workflows/targets.ts'
import type { Sockets } from './sockets.ts'

/** What agents are told without having asked, here or by way of the coordinator that they are connected to. */
export interface Orders {
  /** What is to be cancelled. */
  tellCancels: (runnerId: string) => Promise<void>
  /** What one of its runs waited for. */
  tellWake(runnerId: string, wake: Wake): void
  /** Looks for everything that its programs wait for and have not been given. */
  tellWakes(runnerId: string): void
  /**
   * All of that, to those of them that are connected here. With its next heartbeat an agent hears of it in any case.
   */
  tellAll: (runnerIds: readonly string[]) => Promise<void>
}

export function createOrders(deps: { db: Db; log: Log; versions: Versions; sockets: Sockets; bell: Bell }): Orders {
  const { sockets, bell, log } = deps
  const isHere = (runnerId: string) => sockets.orgOf(runnerId) !== undefined

  const failed = (error: unknown) => log.warn('orders.failed', { error })

  async function tellAll(runnerIds: readonly string[]): Promise<void> {
    if (runnerIds.length === 0) return
    await Promise.all([
      tellCancels(deps, runnerIds),
      ...runnerIds.map((id) => tellWakes(deps, id)),
      tellIntake(deps, runnerIds),
    ]).catch(failed)
  }

  return {
    tellAll,
    async tellCancels(runnerId) {
      const orgId = sockets.orgOf(runnerId)
      if (orgId === undefined) return bell.ring('runner', runnerId)
      // Cancels that come one by one are looked for together.
      await sockets.cancels.share(runnerId, orgId, () => tellCancels(deps, [runnerId]))
    },
    tellWake(runnerId, wake) {
      if (!sockets.tell(runnerId, { t: 'wake', runs: [wake] })) bell.ring('runner', runnerId)
    },
    tellWakes(runnerId) {
      if (isHere(runnerId)) void tellWakes(deps, runnerId).catch(failed)
      else bell.ring('runner', runnerId)
    },
  }
}
