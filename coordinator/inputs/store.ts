import type { InputId, OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import type { InputStatus } from '@windlass/shared/model/input.ts'
import type { Db, Sql, Tx } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import type { NewQuestion } from '../journal/row.ts'

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
    from unnest(
      ${rows.map((r) => r.id)}::text[], ${rows.map((r) => r.orgId)}::text[], ${rows.map((r) => r.runId)}::text[],
      ${rows.map((r) => r.n)}::int[], ${rows.map((r) => r.prompt)}::text[], ${rows.map((r) => r.schemaText)}::text[],
      ${rows.map((r) => r.onTimeoutText)}::text[], ${rows.map((r) => r.timeoutMs)}::float8[]
    ) as t (id, org_id, run_id, n, prompt, schema, on_timeout, timeout_ms)`
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
    from unnest(${due.map((d) => d.runId)}::text[], ${due.map((d) => d.n)}::int[]) as due (run_id, n)
    where inputs.run_id = due.run_id and inputs.n = due.n and ${onlyFilters(tx, tx`inputs.status = 'open'`)}
    returning inputs.id, inputs.run_id, inputs.n, inputs.prompt, inputs.on_timeout`
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

/** A question with the names of what it points to. */
export interface InputRow {
  id: InputId
  runId: RunId
  workflowId: WorkflowId
  workflowSlug: string
  n: number
  prompt: string
  schema: string | null
  status: InputStatus
  createdAt: Date
  dueAt: Date | null
  closedAt: Date | null
  /** JSON; null as well where it is left out for its size. */
  answer: string | null
  answeredBy: string | null
}

const columns = (sql: Sql) => sql`
  i.id, i.run_id, w.id as workflow_id, w.slug as workflow_slug, i.n, i.prompt, i.schema, i.status, i.created_at, i.due_at,
  i.closed_at, i.answered_by`

const joined = (sql: Sql) => sql`
  from inputs i
  join runs r on r.id = i.run_id
  join workflows w on w.id = r.workflow_id`

export async function find(sql: Sql, orgId: OrgId, id: InputId): Promise<InputRow | undefined> {
  const [row] = await sql<InputRow[]>`
    select ${columns(sql)}, i.answer
    ${joined(sql)}
    where i.id = ${id} and ${onlyFilters(sql, sql`i.org_id = ${orgId}`)}`
  return row
}

export interface InputFilter {
  orgId: OrgId
  status: InputStatus[]
  runId: RunId | undefined
  /** Only questions older than this one. */
  before: string | undefined
  limit: number
}

/** A page of a hundred answers of a megabyte each would be too much for anybody. */
const LISTED_ANSWER_BYTES = 16 * 1024

/** Newest first: ids sort by creation. */
export function list(db: Db, f: InputFilter): Promise<InputRow[]> {
  const isOpenOnly = f.status.every((status) => status === 'open')
  const isOfOrg = db`i.org_id = ${f.orgId}`
  const isAsked = isOpenOnly ? db`i.status = 'open'` : db`i.status = any(${f.status})`
  return db<InputRow[]>`
    select ${columns(db)}, case when octet_length(i.answer) <= ${LISTED_ANSWER_BYTES} then i.answer end as answer
    ${joined(db)}
    where ${f.runId ? onlyFilters(db, db`${isOfOrg} and ${isAsked}`) : db`${isOfOrg} and ${isAsked}`}
    ${f.runId ? db`and i.run_id = ${f.runId}` : db``}
    ${f.before ? db`and i.id < ${f.before}` : db``}
    order by i.id desc
    limit ${f.limit}`
}
