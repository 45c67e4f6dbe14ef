import type { PoolId } from '@windlass/shared/ids.ts'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf } from '@windlass/shared/ops/op.ts'
import type { Lanes } from '../db/lanes.ts'
import { type Db, isConnectionLoss } from '../db/client.ts'
import { createFreshCache, type FreshCache } from '../db/fresh-cache.ts'
import * as store from './store-pools.ts'

/** What agents are told of their pools: every heartbeat asks. */
export type PoolSettingsCache = FreshCache<PoolId, PoolSettings>

/** A change made here is seen at once. Read by the connections of heartbeats, each of which asks. */
export function createPoolSettings(beats: Lanes): PoolSettingsCache {
  const read = async (poolId: PoolId) => {
    const settings = await beats.run((db) => store.readSettings(db, poolId))
    return PoolSettings.parse(settings ?? {})
  }
  // A heartbeat waits for a database that is away; what it is told of its pool it was told before.
  return createFreshCache({ read, freshMs: 3000, most: 2000, mayBeOld: isConnectionLoss })
}

export function poolSettingsOf(deps: { poolSettings: PoolSettingsCache }, poolId: PoolId): Promise<PoolSettings> {
  return deps.poolSettings.of(poolId)
}

/** The longest silence, in milliseconds, for which an agent of this pool may go on, by what it was told. */
export function longestFenceIn(db: Db, poolId: PoolId): Promise<number> {
  return store.longestFence(db, poolId)
}

export type SettingsChange = InputOf<typeof ops.pools.update>['settings']

/** What is set after a change: what it leaves out stays, and `null` takes a value back. */
export function changed(now: object, { limits, ...change }: SettingsChange): object {
  const before = now as { limits?: object }
  const merged = withoutNulls({ ...before, ...change })
  if (!limits) return merged
  return { ...merged, limits: withoutNulls({ ...before.limits, ...limits }) }
}

function withoutNulls(values: object): object {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null && value !== undefined))
}

/** The settings as they count, or VALIDATION_FAILED where two of them do not go together. */
export function checked(settings: object): PoolSettings {
  const all = PoolSettings.parse(settings)
  if (all.network !== 'none' || all.isolation === 'bubblewrap') return all
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'settings.network', network: all.network, isolation: all.isolation },
    'settings.network: `none` needs `isolation: "bubblewrap"`; a mere process shares the network of its host. Set both, or set network to `host`.',
  )
}
