import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import { PoolSettings, type RunnerPool } from '@windlass/shared/model/pool.ts'
import type { Runner } from '@windlass/shared/model/runner.ts'
import type { Db } from '../db/client.ts'
import type { Caller } from '../actor.ts'
import { upgradeOf } from './outdated.ts'
import * as store from './store.ts'

export async function listPools(
  deps: { db: Db },
  caller: Caller,
  page: { after: string | undefined; limit: number },
): Promise<RunnerPool[]> {
  return (await store.listPools(deps.db, caller.orgId, page)).map(presentPool)
}

/** `base`: by which the caller reaches us. */
export async function listRunners(deps: { db: Db }, filter: store.RunnerFilter, base: string): Promise<Runner[]> {
  return (await store.listRunners(deps.db, filter)).map((row) => presentRunner(row, base))
}

export async function getRunner(
  deps: { db: Db },
  caller: Caller,
  ask: { runner: RunnerId; base: string },
): Promise<Runner> {
  const row = await store.findRunner(deps.db, caller.orgId, ask.runner)
  if (!row) throw new Fault('NOT_FOUND', { runner: ask.runner })
  return presentRunner(row, ask.base)
}

export function presentPool(row: store.PoolRow): RunnerPool {
  return { ...row, settings: PoolSettings.parse(row.settings), createdAt: row.createdAt.getTime() }
}

export function presentRunner(row: store.RunnerRow, base: string): Runner {
  const { id, org, name, labels, slots, version, protocol, platform, isolation, unready } = row
  const counts = { offered: row.offered, executing: row.executing, parked: row.parked }
  return {
    id,
    org,
    pool: { id: row.poolId, name: row.poolName },
    name,
    status: row.online ? 'online' : 'offline',
    intake: presentIntake(row, counts),
    quarantine:
      row.quarantinedAt && row.quarantinedUntil && row.quarantinedUntil > row.now
        ? {
            since: row.quarantinedAt.getTime(),
            until: row.quarantinedUntil.getTime(),
            reason: row.quarantineReason ?? '',
          }
        : null,
    unready,
    labels: [...new Set([...labels, ...PoolSettings.parse(row.poolSettings).labels])],
    slots,
    activeRuns: row.activeRuns,
    live: counts,
    currentRuns: row.currentRuns,
    version,
    protocol,
    upgrade: upgradeOf({ version, protocol }, base),
    platform,
    isolation,
    createdAt: row.createdAt.getTime(),
    lastPollAt: row.lastPollAt?.getTime() ?? null,
    lastHeartbeatAt: row.lastHeartbeatAt?.getTime() ?? null,
    copyRefusedAt: row.copyRefusedAt?.getTime() ?? null,
  }
}

function presentIntake(row: store.RunnerRow, counts: Runner['live']): Runner['intake'] {
  const isEmpty = counts.offered + counts.executing + counts.parked === 0
  return {
    state: row.state === 'draining' && isEmpty ? 'drained' : row.state,
    epoch: row.epoch,
    since: row.since.getTime(),
    by: row.byKind === null ? null : { kind: row.byKind, name: row.byName ?? '' },
    reason: row.reason,
    deadlineAt: row.deadlineAt?.getTime() ?? null,
    onDeadline: row.onDeadline,
  }
}
