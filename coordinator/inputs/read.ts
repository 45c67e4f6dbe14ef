import { Fault } from '@windlass/shared/errors.ts'
import type { InputId } from '@windlass/shared/ids.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import type { Db } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import type { Caller } from '../actor.ts'
import * as store from './store.ts'

/** So many of the page as fit into one answer, and the one behind them. */
export async function listInputs({ db }: { db: Db }, filter: store.InputFilter) {
  const sizes = await store.sizes(db, { ...filter, limit: filter.limit + 1 })
  const fitting = countFitting(sizes.slice(0, filter.limit))
  const shown = sizes.slice(0, fitting + 1).map(({ id }) => id)
  const rows = await store.list(db, shown)
  return { inputs: rows.map(presentInput), fitting }
}

export async function getInput(deps: { db: Db }, caller: Caller, id: InputId): Promise<PendingInput> {
  return presentInput(await needInput(deps, caller, id))
}

export async function needInput(deps: { db: Db }, caller: Caller, id: InputId): Promise<store.InputRow> {
  const row = await store.find(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { input: id })
  return row
}

/** The question as the API shows it. */
export function presentInput(row: store.InputRow): PendingInput {
  return {
    id: row.id,
    run: { id: row.runId, workflow: { id: row.workflowId, slug: row.workflowSlug } },
    status: row.status,
    prompt: row.prompt,
    schema: row.schema === null ? null : (JSON.parse(row.schema) as PendingInput['schema']),
    createdAt: row.createdAt.getTime(),
    dueAt: row.dueAt?.getTime() ?? null,
    closedAt: row.closedAt?.getTime() ?? null,
    ...(row.answer !== null && { answer: JSON.parse(row.answer) as unknown }),
    answeredBy: row.answeredBy,
  }
}
