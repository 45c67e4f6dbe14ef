import type { Run } from '@windlass/shared/model/run.ts'
import type { Acting, Caller, LongCall } from '../actor.ts'
import { type Change, record } from '../audit/record.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Partitions } from '../db/partitions.ts'
import { announce, type AnnounceDeps } from '../engine/commit/announce.ts'
import { type Created, createOrMerge } from '../engine/commit/debounce.ts'
import { mayStillStart } from '../engine/commit/may-start.ts'
import {
  addRun,
  createRuns,
  prepareRun,
  presentNew,
  starterOf,
  tellOfNew,
  type TriggerAsk,
  type TriggerDeps,
} from '../engine/commit/trigger.ts'
import type { TakeKey } from '../idempotency/once.ts'
import { presentRun } from '../engine/rules/run.ts'
import type { NewRun } from '../engine/store/new-runs.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { Target } from '../workflows/targets.ts'
import { find } from './store.ts'

/** What a caller is answered: a new run, the first one of his key, or the one that this call was merged into. */
export interface Started {
  run: Run
  isNew: boolean
  merged?: number
}

export type StartDeps = TriggerDeps & AnnounceDeps & { db: Db; partitions: Partitions; turns: { orgCalls: OrgTurns } }

/** Queues a run, or merges the call into one that waits for further calls. */
export async function startRun(deps: StartDeps, call: LongCall, ask: TriggerAsk): Promise<Started> {
  return startPrepared(deps, call, await prepareRun(deps, starterOf(call), { ...ask, mayMerge: true }))
}

export async function startPrepared(
  deps: StartDeps,
  call: LongCall,
  prepared: { run: NewRun; target: Target },
): Promise<Started> {
  const { caller } = call
  const { run } = prepared
  if (run.debounce === null) return { run: await addRun(deps, caller, prepared), isNew: true }
  // Calls of one key wait for one another: the others of the moment do not wait with them.
  const create = () => inTransaction(deps, (tx) => createOrMerge(tx, run))
  const stay = () => mayStillStart(deps, starterOf(call), run)
  const created = await deps.turns.orgCalls.run(caller.orgId, { stay }, create)
  return answerTo(deps, caller, prepared, created)
}

type RecordDeps = TriggerDeps & { db: Db; partitions: Partitions }

interface Recorded {
  change: Omit<Change, 'after'>
  take?: TakeKey | undefined
}

/** Queues a run, records who asked for it and takes the key of the request where it has one, in one transaction. */
export async function startRecorded(
  deps: RecordDeps,
  caller: Acting,
  { run, target }: { run: NewRun; target: Target },
  { change, take }: Recorded,
): Promise<Run> {
  const at = await inTransaction(deps, async (tx) => {
    await take?.(tx, run.id)
    const created = await createRuns(tx, [run])
    await record(tx, caller, { ...change, after: { run: run.id, version: target.version.version } })
    return created.get(run.id)!
  })
  tellOfNew(deps, run)
  return presentNew(caller, run, target, at)
}

export function inTransaction<T>(deps: { db: Db; partitions: Partitions }, act: (tx: Tx) => Promise<T>): Promise<T> {
  return deps.partitions.atHand(() => deps.db.begin(act) as Promise<T>)
}

/** Tells those who wait for it, after the commit. */
export async function answerTo(
  deps: StartDeps,
  caller: Caller,
  { run, target }: { run: NewRun; target: Target },
  created: Created,
): Promise<Started> {
  if ('at' in created) {
    tellOfNew(deps, run)
    return { run: presentNew(caller, run, target, created.at), isNew: true }
  }
  const { into, merged } = created
  announce(deps, [into])
  const row = await find(deps.db, caller.orgId, into.id)
  if (!row) throw new Error(`run ${into.id}, into which a call was merged, is missing`)
  return { run: presentRun(row), isNew: false, merged }
}
