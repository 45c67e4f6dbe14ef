/** Whether runners are given work: what the coordinator and the agents themselves change about it. People's verbs stand in steer.ts. */
import type { Log } from '@windlass/shared/log.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { IntakeNotice } from '@windlass/shared/wire/agent.ts'
import type { Bell } from '../events/bell.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Dispatchers } from '../dispatch/dispatcher.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { RunnerVerifier } from './identity.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import type { Revocations } from './revocations.ts'
import type { RunnerIdentity } from '../actor.ts'
import { type Author, type Entry, record, recordAll } from '../audit/record.ts'
import { loseRuns } from '../engine/commit/lose.ts'
import { type Closed, liftCordons, writeCordons } from './store-cordons.ts'
import * as store from './store-intake.ts'

export type IntakeDeps = { db: Db; log: Log; metrics: Metrics } & SpreadDeps
type TellDeps = { db: Db; log: Log; sockets: Sockets }
export type SpreadDeps = TellDeps & {
  bell: Bell
  dispatchers: Dispatchers
  runnerKeys: RunnerVerifier
  revocations: Revocations
}

/** A poll answer that went missing is chance, two in a row are an agent that cannot be reached by them. */
const MOST_UNACCEPTED = 2
/** Cordons of ours that one look lifts, which is each five seconds. */
const MOST_LIFTED = 1000
/** So many failures within this time keep a runner from work for as long. */
const MOST_FAILURES = 3
export const QUARANTINE_MS = 10 * 60_000

/**
 * The agent is being stopped: it gets nothing more until its next start, and what it was offered and has not taken goes back. Nothing of
 * that where `instance` is not the start that speaks for the runner: its word was overtaken by the next one.
 */
export async function closeByAgent(
  deps: IntakeDeps & Parameters<typeof loseRuns>[0],
  runner: Pick<RunnerIdentity, 'id'>,
  { reason, deadlineMs, instance }: { reason: string; deadlineMs: number; instance?: string | undefined },
): Promise<void> {
  let isPast = false
  await change(deps, runner.id, 'runners.drain', async (now, tx) => {
    isPast = !(await store.isPresent(tx, runner.id, instance))
    // What a person has decided holds until a person undoes it.
    if (isPast || isClosedByCaller(now) || now.state === 'draining') return undefined
    return { state: 'draining', byKind: 'agent', byName: 'the agent itself', reason, deadlineMs }
  })
  if (!isPast) await giveBackOffers(deps, runner.id, 'its agent is being stopped')
}

/** After a change that closed it: no claim gives anything out any more, so these are all that there are. */
export async function giveBackOffers(
  deps: Parameters<typeof loseRuns>[0],
  runnerId: RunnerId,
  reason: string,
): Promise<number> {
  const offered = await store.offersOf(deps.db, runnerId)
  // By now others may have been offered the same run.
  const epochs = new Map(offered.map(({ runId, epoch }) => [runId, epoch]))
  return loseRuns(
    deps,
    offered.map(({ runId }) => runId),
    { reason, isLost: ({ runId, epoch, accepted }) => !accepted && epochs.get(runId) === epoch },
  )
}

/** Undoes what was to last until the agent is heard of again, as this start. True: it was closed, and is open. */
export async function liftOnHello(
  deps: IntakeDeps,
  runner: Pick<RunnerIdentity, 'id'>,
  start: store.Start | undefined,
): Promise<boolean> {
  if (!(await store.isLiftable(deps.db, runner.id, start))) return false
  return change(deps, runner.id, 'runners.resume', async (now, tx) => {
    if (!(await store.isLiftable(tx, runner.id, start))) return undefined
    const reason = now.byKind === 'agent' ? 'its agent was started again' : 'its agent is connected again'
    return { state: 'open', ...SYSTEM, reason }
  })
}

const SYSTEM = { byKind: 'system', byName: 'coordinator' } as const

/**
 * Offers work once more to those that we have kept from it for a minute: it was perhaps the coordinator that was slow,
 * and then it has closed all of its runners. Who misses it again is kept from it for longer. What an agent does not
 * accept goes back into the queue after seconds.
 */
export async function liftOldCordons(deps: IntakeDeps): Promise<void> {
  const lifted = await deps.db.begin(async (tx) => {
    const lifted = await liftCordons(tx, { name: SYSTEM.byName, limit: MOST_LIFTED })
    const change = { action: 'runners.resume', was: 'cordoned', is: 'open' }
    await recordAll(
      tx,
      lifted.map((one) => entryOf(one, change)),
    )
    return lifted
  })
  await spreadAll(deps, lifted)
}

function entryOf(changed: Closed, { action, was, is }: { action: string; was: string; is: string }): Entry {
  const { runnerId, epoch, reason, isQuarantined } = changed
  const before = { state: was, epoch: epoch - 1, ...(isQuarantined && { isQuarantined }) }
  const target = { type: 'runner', id: runnerId, name: changed.name }
  return { by: ourselves(changed), action, target, before, after: { state: is, epoch, reason } }
}

/** Each of them is held until all are written, and claims wait for it. */
const CORDONED_AT_ONCE = 200

/** No new work until their agents say hello once more, or for a minute, and for longer if that was so just now. */
export async function cordonBySystem(deps: IntakeDeps, runnerIds: readonly RunnerId[], reason: string): Promise<void> {
  for (let at = 0; at < runnerIds.length; at += CORDONED_AT_ONCE) {
    const cordoned = await cordonThese(deps, runnerIds.slice(at, at + CORDONED_AT_ONCE), reason)
    for (const { runnerId } of cordoned) {
      deps.metrics.runnerClosed('cordon')
      deps.log.warn('runner.cordoned', { runnerId, reason })
    }
    await spreadAll(deps, cordoned)
  }
}

const cordonThese = (deps: IntakeDeps, runnerIds: readonly RunnerId[], reason: string): Promise<Closed[]> =>
  deps.db.begin(async (tx) => {
    const cordoned = await writeCordons(tx, runnerIds, { name: SYSTEM.byName, reason })
    const change = { action: 'runners.cordon', was: 'open', is: 'cordoned' }
    await recordAll(
      tx,
      cordoned.map((one) => entryOf(one, change)),
    )
    return cordoned
  })

/** Preparing a run failed there for a reason that lies with the host. */
export async function noteFailure(deps: IntakeDeps, runnerId: RunnerId, what = ''): Promise<void> {
  const reason = `preparing runs failed ${MOST_FAILURES} times within ten minutes${what && `, at last: ${what}`}`
  const isNew = await deps.db.begin(async (tx) => {
    const now = await store.lockIntake(tx, runnerId)
    if (!now || (await store.countFailure(tx, runnerId, QUARANTINE_MS)) < MOST_FAILURES) return false
    return quarantine(tx, now, reason)
  })
  if (!isNew) return
  deps.metrics.runnerClosed('quarantine')
  deps.log.warn('runner.quarantined', { runnerId, reason })
}

/** No new work for ten minutes. Nothing of what it has is touched, and its epoch stays: nobody has decided anything. */
async function quarantine(tx: Tx, now: store.IntakeRow, reason: string): Promise<boolean> {
  if (now.isQuarantined || now.state === 'revoked') return false
  const [{ until }] = await store.writeQuarantine(tx, now.runnerId, { reason, ms: QUARANTINE_MS })
  const target = { type: 'runner', id: now.runnerId, name: now.name }
  await record(tx, ourselves(now), { action: 'runners.quarantine', target, after: { until: until.getTime(), reason } })
  return true
}

/** These runners did not take in time what a poll had given them: once for each of them, however much that was. */
export async function noteUnaccepted(deps: IntakeDeps, runnerIds: readonly RunnerId[]): Promise<void> {
  if (runnerIds.length === 0) return
  const once = [...new Set(runnerIds)]
  deps.metrics.unaccepted(once.length)
  const reason = `${MOST_UNACCEPTED} offers in a row were not accepted in time`
  const missing = await store.countUnaccepted(deps.db, once, MOST_UNACCEPTED)
  if (missing.length > 0) await cordonBySystem(deps, missing, reason)
}

/** They take what they are given. */
export async function noteAccepted(deps: { db: Db }, runnerIds: readonly RunnerId[]): Promise<void> {
  if (runnerIds.length > 0) await store.forgetUnaccepted(deps.db, [...new Set(runnerIds)])
}

/** What the agents of these runners are told about their work. */
async function intakeNotices(deps: { db: Db }, runnerIds: readonly string[]): Promise<Map<string, IntakeNotice>> {
  const rows = await store.notices(deps.db, runnerIds)
  return new Map(
    rows.map(({ runnerId, deadlineAt, ...notice }) => [
      runnerId,
      { ...notice, deadlineAt: deadlineAt?.getTime() ?? null },
    ]),
  )
}

/** Said to the agent of a runner that was revoked, before it is cut off. */
export const REVOKED_MESSAGE =
  'This runner was revoked, which is for good: what it executes is stopped. Register the machine anew with a new token.'

/** Tells those of these runners that are connected here whether they get work. */
export async function tellIntake(deps: TellDeps, runnerIds: readonly string[]): Promise<void> {
  const here = new Set(deps.sockets.ids())
  const asked = runnerIds.filter((id) => here.has(id))
  if (asked.length === 0) return
  for (const [id, intake] of await intakeNotices(deps, asked)) {
    if (intake.state === 'revoked') deps.sockets.refuse(id, 'REVOKED', REVOKED_MESSAGE)
    else deps.sockets.tell(id, { t: 'intake', intake })
  }
}

type Steered = Pick<store.IntakeRow, 'runnerId' | 'poolId'>

/** After a change: here now, elsewhere by the bell, and with the next heartbeat in any case. */
export const spread = (deps: SpreadDeps, runner: Steered): Promise<void> => spreadAll(deps, [runner])

async function spreadAll(deps: SpreadDeps, runners: readonly Steered[]): Promise<void> {
  for (const { runnerId, poolId } of runners) {
    deps.runnerKeys.forget(runnerId)
    deps.revocations.forget(runnerId)
    deps.bell.ring('runner', runnerId)
    deps.bell.ring('pool', poolId)
  }
  // A poll of an agent that knows nothing of intake may wait here.
  for (const poolId of new Set(runners.map(({ poolId }) => poolId))) deps.dispatchers.poke(poolId)
  const ids = runners.map(({ runnerId }) => runnerId)
  await tellIntake(deps, ids).catch((error: unknown) => deps.log.warn('intake.untold', { error }))
}

type Change = store.IntakeChange | undefined
type Decide = (now: store.IntakeRow, tx: Tx) => Change | Promise<Change>

/** One change by the coordinator or the agent, with its entry in the audit log. False: there was nothing to change. */
async function change(deps: IntakeDeps, runnerId: RunnerId, action: string, decide: Decide): Promise<boolean> {
  const changed = await deps.db.begin(async (tx) => {
    const now = await store.lockIntake(tx, runnerId)
    const next = now && (await decide(now, tx))
    if (!now || !next) return undefined
    await record(tx, ourselves(now, next), await write(tx, action, { now, next }))
    return now
  })
  if (changed) await spread(deps, changed)
  return changed !== undefined
}

/** Answers what the audit log says about it. */
export async function write(tx: Tx, action: string, { now, next }: { now: store.IntakeRow; next: store.IntakeChange }) {
  const { epoch, deadlineAt } = await store.writeIntake(tx, now.runnerId, next)
  const { state, reason, onDeadline } = next
  const target = { type: 'runner', id: now.runnerId, name: now.name }
  const drain = deadlineAt && { deadlineAt: deadlineAt.getTime(), onDeadline: onDeadline ?? null }
  const before = { state: now.state, epoch: now.epoch, ...(now.isQuarantined && { isQuarantined: true }) }
  return { action, target, before, after: { state, epoch, reason, ...drain } }
}

/** The agent speaks for itself, and has no credential that the log could name. */
function ourselves(
  { runnerId, orgId }: Pick<store.IntakeRow, 'runnerId' | 'orgId'>,
  change?: store.IntakeChange,
): Author {
  const isAgent = change?.byKind === 'agent'
  const by = isAgent ? ({ id: runnerId, via: 'runner' } as const) : ({ id: 'coordinator', via: 'system' } as const)
  return { kind: 'system', name: change?.byName ?? SYSTEM.byName, orgId, requestId: null, ...by }
}

const isClosedByCaller = ({ state, byKind }: store.IntakeRow) =>
  state === 'revoked' || (state !== 'open' && byKind === 'caller')
