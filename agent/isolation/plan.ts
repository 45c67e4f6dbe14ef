import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import { ISOLATIONS } from '@windlass/shared/model/pool.ts'
import type { Isolation, PoolSettings, RunLimits } from '@windlass/shared/model/pool.ts'

/** Numbers of users that belong to nobody but the runs of this agent. */
export interface UidRange {
  first: number
  last: number
}

/** What the host's owner says. */
export interface HostIsolation {
  level: Isolation
  network: EffectiveIsolation['network']
  limits: RunLimits
  /** Runs execute as these; null: as the user of the agent. */
  uids: UidRange | null
  /** Nobody has named them. */
  areUsersAutomatic?: boolean
  /** Why `auto` found no users for runs. */
  whyNoUsers?: string | undefined
  /** `auto`, `off`, or the folder of a cgroup that was given to the agent. */
  cgroup: string
}

/** What is wanted of a process, all things considered. Whether the host can give it is the probe's business. */
export type IsolationPlan = HostIsolation

export const NO_LIMITS: RunLimits = { memoryMb: null, cpus: null, processes: null, openFiles: null, diskMb: null }

export const PLAIN: HostIsolation = { level: 'process', network: 'host', limits: NO_LIMITS, uids: null, cgroup: 'auto' }

type PoolIsolation = Pick<PoolSettings, 'isolation' | 'network' | 'limits'>

/** Of isolations the stricter one counts, of limits the lower one. */
export function planIsolation(host: HostIsolation, pool: PoolIsolation | undefined): IsolationPlan {
  if (!pool) return host
  const stricter = Math.max(ISOLATIONS.indexOf(host.level), ISOLATIONS.indexOf(pool.isolation))
  return {
    ...host,
    level: ISOLATIONS[stricter] ?? host.level,
    network: host.network === 'none' ? 'none' : pool.network,
    limits: lowerOf(host.limits, pool.limits),
  }
}

function lowerOf(one: RunLimits, other: RunLimits): RunLimits {
  const lower = (name: keyof RunLimits) => {
    const set = [one[name], other[name]].filter((each) => each !== null)
    return set.length === 0 ? null : Math.min(...set)
  }
  return {
    memoryMb: lower('memoryMb'),
    cpus: lower('cpus'),
    processes: lower('processes'),
    openFiles: lower('openFiles'),
    diskMb: lower('diskMb'),
  }
}

/** Processes that were started under equal keys may stand in for one another. */
export function planKey(plan: IsolationPlan): string {
  return JSON.stringify(plan)
}
