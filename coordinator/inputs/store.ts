import type { InputId, OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import type { InputStatus } from '@windlass/shared/model/input.ts'
import type { Db, Sql } from '../db/client.ts'
import { onlyFilters } from '../db/by-key.ts'
import { type Fragment, newest } from '../db/newest.ts'

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

/** Newest first. */
export function list(db: Db, ids: readonly InputId[]): Promise<InputRow[]> {
  return db<InputRow[]>`
    select ${columns(db)}, ${listedAnswer(db)} as answer
    ${joined(db)}
    where i.id = any(${[...ids]})
    order by i.id desc`
}

const listedAnswer = (db: Db) => db`case when octet_length(i.answer) <= ${LISTED_ANSWER_BYTES} then i.answer end`

/** The questions of a page and the bytes of their texts, newest first: ids sort by creation. */
export function sizes(db: Db, f: InputFilter): Promise<{ id: InputId; bytes: number }[]> {
  return db<{ id: InputId; bytes: number }[]>`
    ${f.runId ? ofRun(db, f, f.runId) : ofStatuses(db, f)}
    order by id desc
    limit ${f.limit}`
}

const measured = (db: Db) => db`
  i.id, octet_length(i.prompt) + coalesce(octet_length(i.schema), 0)
    + coalesce(octet_length(${listedAnswer(db)}), 0) as bytes`

function ofRun(db: Db, { orgId, status, before }: InputFilter, runId: RunId): Fragment {
  const isAsked = onlyFilters(db, db`i.org_id = ${orgId} and i.status = any(${status})`)
  return db`
    select ${measured(db)}
    from inputs i
    where i.run_id = ${runId} and ${isAsked} ${before ? db`and i.id < ${before}` : db``}`
}

/** One range of the index for each status. */
function ofStatuses(db: Db, { orgId, status, before, limit }: InputFilter): Fragment {
  const parts = [...new Set(status)].map((one) => {
    const range = { columns: [db`i.status`, db`i.org_id`], values: [one, orgId], id: db`i.id` }
    const { where, order } = newest(db, { ...range, before })
    return db`(select ${measured(db)} from inputs i where ${where} order by ${order} limit ${limit})`
  })
  const all = parts.reduce((list, part) => db`${list} union all ${part}`)
  return db`select id, bytes from (${all}) as newest`
}
