import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import type { GroupCommit } from '../db/group-commit.ts'
import type { RunAddress } from './store.ts'
import type { Caller, ProgramIdentity } from '../actor.ts'
import type { Db, Sql } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import { presentRun, type RunRow } from '../engine/rules/run.ts'
import { mapInSlices } from '../slices.ts'
import * as store from './store.ts'
import { list, listIds, listStretch, type RunFilter, type Stretch } from './store-list.ts'

export async function getRun(
  deps: { runReads: GroupCommit<RunAddress, Run | undefined> },
  caller: Caller,
  id: RunId,
): Promise<Run> {
  const run = await deps.runReads.add({ orgId: caller.orgId, id })
  if (!run) throw new Fault('NOT_FOUND', { run: id })
  return run
}

/** For all who ask at this moment: many look at their runs again and again, and several at the same one. */
export async function readRuns(db: Db, asked: readonly store.RunAddress[]): Promise<(Run | undefined)[]> {
  const keyOf = ({ orgId, id }: store.RunAddress) => `${orgId} ${id}`
  const once = new Map(asked.map((one) => [keyOf(one), one]))
  const rows = await store.findAll(db, [...once.values()])
  const runs = new Map(rows.map((row) => [keyOf(row), presentRun(row)]))
  return asked.map((one) => runs.get(keyOf(one)))
}

/** So many of the page as fit into one answer, and the one behind them. */
export async function listRuns({ db }: { db: Db }, filter: RunFilter): Promise<{ runs: Run[]; fitting: number }> {
  const rows = await list(db, { ...filter, limit: filter.limit + 1 })
  const fitting = countFitting(rows.slice(0, filter.limit).map(sizeOf))
  return { runs: await mapInSlices(rows.slice(0, fitting + 1), presentRun, filter.orgId), fitting }
}

/** What programs have said is the one thing that may be large. */
const sizeOf = ({ error, blocked }: RunRow) => ({ bytes: byteLength(error) + byteLength(blocked) })
const byteLength = (text: string | null) => (text === null ? 0 : Buffer.byteLength(text))

/** Those of the same runs. */
export function listRunIds(sql: Sql, filter: RunFilter): Promise<RunId[]> {
  return listIds(sql, filter)
}

/** A piece of the same search, over so many runs at most. */
export function searchRuns(sql: Sql, filter: RunFilter, most: number): Promise<Stretch> {
  return listStretch(sql, filter, most)
}

/** JSON text of what the run was called with. */
export async function inputOf(deps: { db: Db }, caller: Caller, id: RunId): Promise<string> {
  const input = await store.inputOf(deps.db, caller.orgId, id)
  if (input === undefined) throw new Fault('NOT_FOUND', { run: id })
  return input
}

/** JSON text of what the run returned. */
export async function outputOf(deps: { db: Db }, caller: Caller, id: RunId): Promise<string> {
  const { status, output } = await returnedBy(deps, caller, id)
  return (status === 'completed' ? output : null) ?? 'null'
}

/** JSON text of what the run returned and failed with, as it does not fit its schema. */
export async function refusedOutputOf(deps: { db: Db }, caller: Caller, id: RunId): Promise<string> {
  const { status, output } = await returnedBy(deps, caller, id)
  return (status === 'failed' ? output : null) ?? 'null'
}

async function returnedBy(deps: { db: Db }, caller: Caller, id: RunId) {
  const row = await store.outputOf(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  if (!isFinal(row.status))
    throw new Fault(
      'RUN_NOT_FINISHED',
      { run: id, status: row.status },
      `The run is ${row.status}; its output is there when it has completed.`,
    )
  return row
}

/** The run for its own program. Its token is dead as soon as the placement is. */
export async function selfOf(deps: { db: Db }, program: ProgramIdentity, id: RunId) {
  const row = id === program.runId ? await store.find(deps.db, program.orgId, id) : undefined
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  const lives =
    row.epoch === program.epoch && row.runnerId === program.runnerId && !isFinal(row.status) && row.status !== 'queued'
  if (!lives) throw new Fault('STALE_PLACEMENT', { run: id, epoch: program.epoch })
  return { id: row.id, status: row.status, attempt: row.attempt, epoch: row.epoch }
}
