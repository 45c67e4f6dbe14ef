import { Fault } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import type { Caller, ProgramIdentity } from '../actor.ts'
import type { Deps } from '../deps.ts'
import { presentRun } from './row.ts'
import * as store from './store.ts'

export async function getRun(deps: Pick<Deps, 'db'>, caller: Caller, id: RunId): Promise<Run> {
  const row = await store.find(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  return presentRun(row)
}

export async function listRuns(deps: Pick<Deps, 'db'>, filter: store.RunFilter): Promise<Run[]> {
  return (await store.list(deps.db, filter)).map(presentRun)
}

/** JSON text of what the run was called with. */
export async function inputOf(deps: Pick<Deps, 'db'>, caller: Caller, id: RunId): Promise<string> {
  const row = await store.payloads(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  return row.input
}

/** JSON text of what the run returned. */
export async function outputOf(deps: Pick<Deps, 'db'>, caller: Caller, id: RunId): Promise<string> {
  const row = await store.payloads(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  if (!isFinal(row.status))
    throw new Fault(
      'RUN_NOT_FINISHED',
      { run: id, status: row.status },
      `The run is ${row.status}; its output is there when it has completed.`,
    )
  return row.output ?? 'null'
}

/** The run for its own program. Its token is dead as soon as the placement is. */
export async function selfOf(deps: Pick<Deps, 'db'>, program: ProgramIdentity, id: RunId) {
  const row = id === program.runId ? await store.find(deps.db, program.orgId, id) : undefined
  if (!row) throw new Fault('NOT_FOUND', { run: id })
  const lives =
    row.epoch === program.epoch && row.runnerId === program.runnerId && !isFinal(row.status) && row.status !== 'queued'
  if (!lives) throw new Fault('STALE_PLACEMENT', { run: id, epoch: program.epoch })
  return { id: row.id, status: row.status, attempt: row.attempt, epoch: row.epoch }
}
