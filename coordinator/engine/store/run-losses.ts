import { foundBy } from '../../db/by-key.ts'
import type { Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import type { Moving } from '../rules/run.ts'

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
    from ${unnest(tx, 'm', runs, {
      runId: ['text', (r) => r.id],
      epoch: 'int',
      attempt: ['int', (r) => r.loss!.attempt],
      runnerId: 'text',
      what: ['text', (r) => r.loss!.what],
      reason: ['text', (r) => r.loss!.reason],
      isCounted: ['int', (r) => Number(r.loss!.isCounted)],
    })}
    left join placements p on ${foundBy(tx, tx`p.run_id`, tx`m.run_id`)} and p.epoch = m.epoch
    on conflict (run_id, epoch) do nothing`
}

/**
 * Something of these runs was taken from their agents. Written once a second at most. To come after what else locks
 * placements, and waits for none of them: a heartbeat locks them in their order.
 */
export function noteAcks(tx: Tx, runs: readonly Moving[]): PromiseLike<unknown> {
  return tx`
    update placements p
    set acked_at = now(), refused_since = null
    from (
      select run_id
      from placements
      where run_id = any(${runs.map((run) => run.id)})
        and (acked_at is null or acked_at < now() - interval '1 second' or refused_since is not null)
      for update skip locked
    ) heard
    where ${foundBy(tx, tx`p.run_id`, tx`heard.run_id`)}`
}
