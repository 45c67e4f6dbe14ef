import type { RunId } from '@windlass/shared/ids.ts'
import type { Loss } from '@windlass/shared/model/run.ts'
import type { Sql, Tx } from '../db/client.ts'
import type { Moving } from './row.ts'

/**
 * Inserts how runs lose their processes now. Their placements must still be there: these know when they were last heard
 * of.
 */
export function insertLosses(tx: Tx, runs: readonly Moving[]): PromiseLike<unknown> {
  return tx`
    insert into run_losses (run_id, epoch, attempt, runner_id, what, reason, last_ack_at, last_renewal_at, is_counted,
                            lengthened_ms)
    select m.run_id, m.epoch, m.attempt, m.runner_id, m.what, m.reason, p.acked_at, p.renewed_at,
           m.is_counted = 1, p.lengthened_ms
    from unnest(
      ${runs.map((r) => r.id)}::text[], ${runs.map((r) => r.epoch)}::int[], ${runs.map((r) => r.loss!.attempt)}::int[],
      ${runs.map((r) => r.runnerId)}::text[], ${runs.map((r) => r.loss!.what)}::text[], ${runs.map((r) => r.loss!.reason)}::text[],
      ${runs.map((r) => Number(r.loss!.isCounted))}::int[]
    ) as m (run_id, epoch, attempt, runner_id, what, reason, is_counted)
    left join placements p on p.run_id = m.run_id and p.epoch = m.epoch
    on conflict (run_id, epoch) do nothing`
}

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

/**
 * Something of these runs was taken from their agents. Written once a second at most. To come after what else locks
 * placements, and waits for none of them: a heartbeat locks them in their order.
 */
export function noteAcks(tx: Tx, runs: readonly Moving[]): PromiseLike<unknown> {
  return tx`
    update placements p
    set acked_at = now()
    from (
      select run_id
      from placements
      where run_id = any(${runs.map((run) => run.id)}) and (acked_at is null or acked_at < now() - interval '1 second')
      for update skip locked
    ) heard
    where p.run_id = heard.run_id`
}
