import type { PoolId } from '@windlass/shared/ids.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Deps } from '../deps.ts'
import { poolSettingsOf } from './pool-settings.ts'
import { agentSettings, leaseOf } from './settings.ts'

/** The most that a pool may say. An agent that says more would keep its runs for itself. */
const LONGEST_MS = 86_400_000

/**
 * What one connected agent was told about its silence, and what it obeys. The lease is longer than both: an agent may not have heard yet
 * of a change, or be the only one that has.
 */
export interface Promised {
  /** The settings of the moment, which the agent is about to be told. `obeyedMs` is the silence that it says it obeys. */
  tell(obeyedMs: number | undefined): Promise<{ settings: AgentSettings; leaseMs: number }>
  /** For a heartbeat: `news` is what has changed since it was told last. */
  renew(obeyedMs: number | undefined): Promise<{ leaseMs: number; news: AgentSettings | undefined }>
  lease(): Promise<{ leaseMs: number }>
}

export function createPromise(deps: Pick<Deps, 'config' | 'sockets' | 'poolSettings'>, poolId: PoolId): Promised {
  let obeyed = 0
  let told = 0
  let toldText = ''

  async function now(obeyedMs: number | undefined) {
    const pool = await poolSettingsOf(deps, poolId)
    obeyed = Math.min(obeyedMs ?? obeyed, Math.max(LONGEST_MS, deps.config.fenceMs))
    return { pool, settings: agentSettings(deps, pool) }
  }

  function telling({ fenceMs }: AgentSettings, text: string): void {
    toldText = text
    told = fenceMs
  }

  return {
    async tell(obeyedMs) {
      const { pool, settings } = await now(obeyedMs)
      telling(settings, JSON.stringify(settings))
      return { settings, leaseMs: leaseOf(deps.config, pool, Math.max(obeyed, told)) }
    },
    async renew(obeyedMs) {
      const { pool, settings } = await now(obeyedMs)
      const text = JSON.stringify(settings)
      // Protocol 2 does not say what it obeys, and hears of settings with its welcome only.
      const isNews = text !== toldText && obeyedMs !== undefined
      if (isNews) telling(settings, text)
      return { leaseMs: leaseOf(deps.config, pool, Math.max(obeyed, told)), news: isNews ? settings : undefined }
    },
    async lease() {
      const { pool } = await now(undefined)
      return { leaseMs: leaseOf(deps.config, pool, Math.max(obeyed, told)) }
    },
  }
}
