import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Retention } from '@windlass/shared/model/retention.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf } from '@windlass/shared/ops/op.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import * as store from './store.ts'

export type Limits = Pick<Config, 'maxRunsDays' | 'maxDeliveriesDays'>
type Deps = { db: Db; config: Limits }

/** What is shortened begins to delete after so long: a mistyped number can be mended until then. */
const ACTS_AFTER_MS = 3_600_000

export async function getRetention({ db, config }: Deps, orgId: OrgId): Promise<Retention> {
  return present(await store.find(db, orgId), config)
}

type Ask = Pick<InputOf<typeof ops.retention.update>, 'runsDays' | 'deliveriesDays'>

/** What is left out stays. */
export async function updateRetention({ db, config }: Deps, caller: Acting, ask: Ask): Promise<Retention> {
  assertBelow('runsDays', ask.runsDays, config.maxRunsDays)
  assertBelow('deliveriesDays', ask.deliveriesDays, config.maxDeliveriesDays)
  const { orgId } = caller
  await db.begin(async (tx) => {
    const { runsDays, deliveriesDays } = await store.lock(tx, orgId)
    const before = { runsDays, deliveriesDays }
    const { runsDays: runs = runsDays, deliveriesDays: deliveries = deliveriesDays } = ask
    const after = { runsDays: runs, deliveriesDays: deliveries }
    if (after.runsDays === runsDays && after.deliveriesDays === deliveriesDays) return
    await store.write(tx, orgId, after, ACTS_AFTER_MS)
    await record(tx, caller, { action: 'retention.update', target: { type: 'org', id: orgId }, before, after })
  })
  return getRetention({ db, config }, orgId)
}

function assertBelow(field: string, days: number | null | undefined, most: number | undefined): void {
  if (most === undefined || days === undefined || days === null || days <= most) return
  const message = `${field}: this service keeps them for ${most} days at most. Say fewer, or null for all.`
  throw new Fault('VALIDATION_FAILED', { path: field, limit: most }, message)
}

function present(row: store.RetentionRow | undefined, limits: Limits): Retention {
  return {
    runsDays: row?.runsDays ?? null,
    deliveriesDays: row?.deliveriesDays ?? null,
    maxRunsDays: limits.maxRunsDays ?? null,
    maxDeliveriesDays: limits.maxDeliveriesDays ?? null,
    actsAt: row && (row.runsDays ?? row.deliveriesDays) !== null ? row.actsAt.getTime() : null,
  }
}

/**
 * For how many days they are kept at a moment; undefined: for ever. What an org has said may not act yet, but takes
 * nothing from what the operator has set, or who changes it each hour would keep all for ever.
 */
export function daysOf({ actsAt, ...said }: store.RetentionRow, limits: Limits, now: number) {
  const own = actsAt.getTime() <= now ? said : NOTHING
  return {
    runs: lower(own.runsDays, limits.maxRunsDays),
    deliveries: lower(own.deliveriesDays, limits.maxDeliveriesDays),
  }
}

const NOTHING = { runsDays: null, deliveriesDays: null }

function lower(own: number | null, most: number | undefined): number | undefined {
  return own === null ? most : Math.min(own, most ?? own)
}
