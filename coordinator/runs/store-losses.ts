import type { RunId } from '@windlass/shared/ids.ts'
import type { Loss } from '@windlass/shared/model/run.ts'
import type { Sql, Tx } from '../db/client.ts'

const ms = (sql: Sql, column: string) => sql`(extract(epoch from l.${sql(column)}) * 1000)::bigint`

/** A row `l` of `run_losses` as readers see it, with its runner as `h`. */
const asLoss = (sql: Sql) => sql`
  json_build_object(
    'at', ${ms(sql, 'at')}, 'attempt', l.attempt, 'what', l.what, 'reason', l.reason,
    'runner', case when h.id is not null then json_build_object('id', h.id, 'name', h.name) end,
    'lastAckAt', ${ms(sql, 'last_ack_at')}, 'lastRenewalAt', ${ms(sql, 'last_renewal_at')},
    'lengthenedMs', l.lengthened_ms
  )`

/** The last loss of the run `r`; for a select list. */
export const lastLoss = (sql: Sql) => sql`
  select ${asLoss(sql)}
  from run_losses l
  left join runners h on h.id = l.runner_id
  where l.run_id = r.id
  order by l.epoch desc
  limit 1`

/** The last one first. */
export async function lossesOf(tx: Tx, id: RunId, limit: number): Promise<Loss[]> {
  const rows = await tx<{ loss: Loss }[]>`
    select ${asLoss(tx)} as loss
    from run_losses l
    left join runners h on h.id = l.runner_id
    where l.run_id = ${id}
    order by l.epoch desc
    limit ${limit}`
  return rows.map((row) => row.loss)
}
