import type { InputId, OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../db/client.ts'
import { onlyFilters } from '../../db/by-key.ts'
import { unnest } from '../../db/unnest.ts'
import type { NewQuestion } from '../rules/journal.ts'

/** A question about to be asked. */
export interface NewInput extends NewQuestion {
  orgId: OrgId
  runId: RunId
}

/**
 * Inserts questions. The caller holds the locks of the runs. Time counts from the transaction's `now()`, like that of
 * the timer beside it.
 */
export function insert(tx: Tx, rows: NewInput[]): PromiseLike<unknown> {
  return tx`
    insert into inputs (id, org_id, run_id, n, prompt, schema, on_timeout, due_at)
    select id, org_id, run_id, n, prompt, schema, on_timeout, now() + timeout_ms * interval '1 millisecond'
    from ${unnest(tx, 't', rows, {
      id: 'text',
      orgId: 'text',
      runId: 'text',
      n: 'int',
      prompt: 'text',
      schema: ['text', (r) => r.schemaText],
      onTimeout: ['text', (r) => r.onTimeoutText],
      timeoutMs: 'float8',
    })}`
}

/** The runs have ended: nobody listens to an answer any more. The caller holds their locks. */
export function close(tx: Tx, runIds: string[]): PromiseLike<unknown> {
  return tx`
    update inputs
    set status = 'closed', closed_at = now()
    where run_id = any(${runIds}) and ${onlyFilters(tx, tx`status = 'open'`)}`
}

export interface TimedOut {
  id: InputId
  runId: RunId
  n: number
  prompt: string
  /** JSON of the answer to take; null: the call fails with INPUT_TIMED_OUT. */
  onTimeout: string | null
}

/**
 * Time is up. The caller holds the locks of the runs. A question that was answered or closed before is left alone and
 * not among the rows: whoever closed it has completed the entry.
 */
export function timeOut(tx: Tx, due: { runId: string; n: number }[]): PromiseLike<TimedOut[]> {
  return tx<TimedOut[]>`
    update inputs
    set status = 'timed_out', closed_at = now()
    from ${unnest(tx, 'due', due, { runId: 'text', n: 'int' })}
    where inputs.run_id = due.run_id and inputs.n = due.n and ${onlyFilters(tx, tx`inputs.status = 'open'`)}
    returning inputs.id, inputs.run_id, inputs.n, inputs.prompt, inputs.on_timeout`
}

/** Bytes of the answers that these questions get when their time is up, in their order. */
export async function answerBytes(db: Db, due: readonly { runId: string; n: number }[]): Promise<number[]> {
  const rows = await db<{ bytes: number }[]>`
    select coalesce(octet_length(i.on_timeout), 0) as bytes
    from ${unnest(db, 'due', due, { runId: 'text', n: 'int', place: 'ordinality' })}
    left join inputs i on i.run_id = due.run_id and i.n = due.n
    order by due.place`
  return rows.map(({ bytes }) => bytes)
}

/** The first answer counts: false when the question is not open any more. The caller holds the lock of the run. */
export async function answer(tx: Tx, given: { id: InputId; text: string; by: string }): Promise<boolean> {
  const rows = await tx`
    update inputs
    set status = 'answered', closed_at = now(), answer = ${given.text}, answered_by = ${given.by}
    where id = ${given.id} and ${onlyFilters(tx, tx`status = 'open'`)}
    returning id`
  return rows.length > 0
}
