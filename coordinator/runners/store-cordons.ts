import type { OrgId, PoolId, RunnerId } from '@windlass/shared/ids.ts'
import type { Sql, Tx } from '../db/client.ts'

/** The first of a row lasts so long, and each further one twice as long as the one before. */
const CORDON_MS = 60_000
const MOST_CORDONS = 4
/** What happens later than this after the runner got work again begins a new row. */
const IN_A_ROW = '10 minutes'

/** How many cordons in a row this will be, by the row of the runner as it is before. */
export const cordonsInARow = (sql: Sql) => sql`
  case
    when by_kind = 'system' and since > now() - ${IN_A_ROW}::text::interval
      then least(cordons + 1, ${MOST_CORDONS}::int)
    else 1
  end`

/** A coordinator of before does not count: what it has cordoned is the first of a row at least. */
const lengthMs = (sql: Sql) => sql`${CORDON_MS}::int * (1 << least(greatest(i.cordons, 1), ${MOST_CORDONS}::int) - 1)`

const isOver = (sql: Sql) => sql`
  i.state = 'cordoned' and i.by_kind = 'system' and i.since <= now() - ${lengthMs(sql)} * interval '1 millisecond'`

export interface Closed {
  runnerId: RunnerId
  orgId: OrgId
  poolId: PoolId
  name: string
  epoch: number
  reason: string
  isQuarantined: boolean
}

/** Keeps those of these runners from work that may get it. */
export function writeCordons(tx: Tx, runnerIds: readonly RunnerId[], by: { name: string; reason: string }) {
  return tx<Closed[]>`
    with free as materialized (
      select runner_id
      from runner_intake
      where runner_id = any(${[...runnerIds]}) and state = 'open'
      order by runner_id
      for update
    ),
    cordoned as (
      update runner_intake i
      set
        state            = 'cordoned',
        epoch            = i.epoch + 1,
        since            = now(),
        by_kind          = 'system',
        by_name          = ${by.name},
        reason           = ${by.reason},
        deadline_at      = null,
        on_deadline      = null,
        deadline_done_at = null,
        unaccepted       = 0,
        cordons          = ${cordonsInARow(tx)}
      from free
      where i.runner_id = free.runner_id
      returning i.runner_id, i.epoch, i.reason, (i.quarantined_until > now()) is true as is_quarantined
    )
    select r.id as runner_id, r.org_id, r.pool_id, r.name, cordoned.epoch, cordoned.reason, cordoned.is_quarantined
    from cordoned
    join runners r on r.id = cordoned.runner_id
    where r.deregistered_at is null
    order by r.id`
}

export interface Lifted extends Closed {
  /** How long it was kept from work at least. */
  ms: number
}

/**
 * Gives work again to runners that the coordinator itself has kept from it for long enough: the first of each org,
 * then the second of each. Rows that others hold are left to the next look.
 */
export function liftCordons(tx: Tx, by: { name: string; limit: number }): Promise<Lifted[]> {
  return tx<Lifted[]>`
    with due as materialized (
      select i.runner_id, r.org_id, r.pool_id, r.name
      from runner_intake i
      join runners r on r.id = i.runner_id
      where ${isOver(tx)} and r.deregistered_at is null
      order by row_number() over (partition by r.org_id order by i.since, i.runner_id), i.runner_id
      limit ${by.limit}
    ),
    free as materialized (
      select i.runner_id, ${lengthMs(tx)} as ms
      from runner_intake i
      where i.runner_id in (select runner_id from due) and ${isOver(tx)}
      order by i.runner_id
      for update skip locked
    ),
    lifted as (
      update runner_intake i
      set
        state      = 'open',
        epoch      = i.epoch + 1,
        since      = now(),
        by_name    = ${by.name},
        reason     = free.ms / 1000 || ' s have passed: it is offered work once more',
        unaccepted = 0
      from free
      where i.runner_id = free.runner_id
      returning i.runner_id, i.epoch, i.reason, (i.quarantined_until > now()) is true as is_quarantined, free.ms
    )
    select due.*, lifted.epoch, lifted.reason, lifted.is_quarantined, lifted.ms
    from lifted
    join due on due.runner_id = lifted.runner_id
    order by lifted.runner_id`
}
