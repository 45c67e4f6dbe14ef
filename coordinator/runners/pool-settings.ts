import type { PoolId } from '@windlass/shared/ids.ts'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf } from '@windlass/shared/ops/op.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import * as store from './store-pools.ts'

/** What agents are told of their pools, kept for a moment: every heartbeat asks. */
export interface PoolSettingsCache {
  of(poolId: PoolId): Promise<PoolSettings>
  forget(poolId: PoolId): void
}

/** A change made through another coordinator is seen after this long at the latest; one made here, at once. */
const FRESH_MS = 3000
const KEPT = 2000

export function createPoolSettings(db: Db): PoolSettingsCache {
  const kept = new Map<PoolId, { at: number; found: Promise<PoolSettings> }>()
  return {
    of(poolId) {
      const known = kept.get(poolId)
      if (known && performance.now() - known.at < FRESH_MS) return known.found
      const found = store.readSettings(db, poolId).then((settings) => PoolSettings.parse(settings ?? {}))
      if (kept.size >= KEPT) kept.clear()
      kept.set(poolId, { at: performance.now(), found })
      found.catch(() => kept.get(poolId)?.found === found && kept.delete(poolId))
      return found
    },
    forget: (poolId) => void kept.delete(poolId),
  }
}

export function poolSettingsOf(deps: Pick<Deps, 'poolSettings'>, poolId: PoolId): Promise<PoolSettings> {
  return deps.poolSettings.of(poolId)
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
