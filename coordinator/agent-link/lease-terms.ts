import type { PoolId, RunnerId } from '@windlass/shared/ids.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import { type PoolSettingsCache, poolSettingsOf } from '../runners/pool-settings.ts'
import type { Sockets } from './sockets.ts'
import { agentSettings, leaseOf } from '../runners/settings.ts'
import { lowerFence, raiseFence } from './store.ts'

/**
 * What one connected agent was told about its silence, and what it obeys. The lease is longer than both: an agent may
 * not have heard yet of a change, or be the only one that has. The longest that it may believe is in the database
 * (`told_fence_ms`): the coordinator that told it may be gone, and what an agent says of itself may be anything.
 */
export interface LeaseTerms {
  /** What an agent that says hello is about to be told, and the lease that goes with it. */
  settings(): Promise<{ settings: AgentSettings; leaseMs: number }>
  /** Notes that the agent was let in with these settings; `mostMs` is stored now. Returns its lease. */
  entered(settings: AgentSettings, mostMs: number): Promise<number>
  /** For a heartbeat: `news` is what has changed since it was told last. */
  renew(obeyedMs: number | undefined): Promise<{ leaseMs: number; news: AgentSettings | undefined }>
  lease(): Promise<{ leaseMs: number }>
}

export function createLeaseTerms(
  deps: { db: Db; config: Config; sockets: Sockets; poolSettings: PoolSettingsCache },
  { id, poolId }: { id: RunnerId; poolId: PoolId },
): LeaseTerms {
  let most = 0
  let sentFenceMs = 0
  let sentText = ''

  const poolOf = () => poolSettingsOf(deps, poolId)

  function telling(settings: AgentSettings): void {
    sentText = JSON.stringify(settings)
    sentFenceMs = settings.fenceMs
  }

  const lease = async () => ({ leaseMs: leaseOf(deps.config, await poolOf(), most) })

  return {
    async settings() {
      const pool = await poolOf()
      const settings = agentSettings(deps, pool)
      return { settings, leaseMs: leaseOf(deps.config, pool, settings.fenceMs) }
    },
    async entered(settings, mostMs) {
      telling(settings)
      most = mostMs
      return (await lease()).leaseMs
    },
    async renew(obeyedMs) {
      const settings = agentSettings(deps, await poolOf())
      // One that does not say what it obeys hears of settings with its welcome only.
      const isNews = obeyedMs !== undefined && JSON.stringify(settings) !== sentText
      if (isNews && settings.fenceMs > most) most = await raiseFence(deps.db, id, settings.fenceMs)
      if (isNews) telling(settings)
      // An agent that beats has had its welcome.
      const least = Math.max(obeyedMs ?? sentFenceMs, sentFenceMs)
      if (least < most && (await lowerFence(deps.db, id, { from: most, to: least }))) most = least
      return { ...(await lease()), news: isNews ? settings : undefined }
    },
    lease,
  }
}
