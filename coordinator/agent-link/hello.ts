import { setImmediate } from 'node:timers/promises'
import { probe } from '@windlass/shared/probe.ts'
import { type AgentFrame, protocolOf, WELCOME_MS } from '@windlass/shared/wire/agent.ts'
import { LEAST_PART_CHARS } from '@windlass/shared/wire/parts.ts'
import type { RunnerIdentity } from '../actor.ts'
import { ourselves } from '../audit/ourselves.ts'
import { type Change, record } from '../audit/record.ts'
import type { Tx } from '../db/client.ts'
import { type Reconciled, reconcile } from '../engine/commit/leases.ts'
import { explainLosses, type Return, whatWasLost } from '../engine/commit/losses.ts'
import { tellRefusals, tellWakes } from '../dispatch/wakes.ts'
import { createSample } from '../limits/sample.ts'
import { liftOnHello, REVOKED_MESSAGE } from '../runners/intake.ts'
import { POLICY, TRY_AGAIN } from './close-codes.ts'
import type { Session } from './session.ts'
import * as store from './store.ts'
import type { RefusalCode } from './sockets.ts'
import { misfit } from '../runners/upgrade.ts'

type Hello = Extract<AgentFrame, { t: 'hello' }>

/** The most of a reason that its 123 bytes surely take. */
const REASON_CHARS = 100

const COPY =
  'Another agent goes on with this identity: this state folder is a copy or a backup of its folder. ' +
  'Nothing of what is here is executed. ' +
  'To run an agent here as well, start it with an empty folder and a registration token of its own.'

/** Two heartbeats at their longest distance, which is a fifth more than they are told. */
const QUIET_BEATS = 2.5

/** At most 123 bytes: the agent's log has it as the reason of the end. */
const WAIT = 'another start of this agent is connected or executes runs: stop it, or wait until its lease is over'
const STARTED_ANEW =
  'this machine was heard from just before it was started anew, or a clone of it is: wait for silence'

const GIVEN_UP = 'the agent has given this connection up, and said hello over a later one'
const LATE = 'the hello was read too late: its agent may have given this connection up'

/** So long before an agent gives its connection up, for those of which the database cannot tell that they have. */
const MARGIN_MS = 5_000

/** By runner: who connects again and again must not fill the disk. */
const lines = { connected: createSample(), fromBefore: createSample(), copy: createSample() }

/** Lets the agent in, or tells why not. Nobody who is not let in takes anything from the agent that is. */
export async function greet(session: Session, frame: Hello): Promise<boolean> {
  const { deps, runner, socket, terms, tell } = session
  const unfit = misfit(frame.protocol, session.baseUrl)
  if (unfit !== undefined) return turnAway(session, 'UPGRADE_REQUIRED', unfit)
  const { settings, leaseMs: nextLeaseMs } = await terms.settings()
  const { fenceMs, heartbeatMs } = settings
  // What was read with it: the end of the connection, where the coordinator stood still meanwhile.
  await setImmediate()
  if (session.isOver) return false
  if (mayBeGivenUp(session, frame)) return putOff(session, LATE)
  const before = await enter(session, frame, { leaseMs: nextLeaseMs, fenceMs, quietMs: QUIET_BEATS * heartbeatMs })
  // After the answer, for which it may have waited long: this errs by the way of the answer, to what was before.
  const openMs = performance.now() - session.openedAt
  if (!before) return turnAway(session, 'REVOKED', REVOKED_MESSAGE)
  if (!before.isIn) {
    if (before.isGivenUp) return putOff(session, GIVEN_UP)
    if (mayBeStartedAnew(session, frame, before)) return putOff(session, STARTED_ANEW)
    if (mayBeMoved(frame, before)) return putOff(session)
    await reportCopy(session, frame)
    return isCopy(frame, before) ? turnAway(session, 'REPLACED', COPY) : putOff(session)
  }
  session.instance = frame.instance?.id
  session.connection = before.connection
  const leaseMs = await terms.entered(settings, before.toldFenceMs)
  if (session.isOver) return false
  deps.sockets.join(runner, socket)
  await liftOnHello(deps, runner, frame.instance)
  const settled = await settle(session, frame, { before, leaseMs, openedAt: before.at! - openMs })
  if (!settled) return false
  const { intake, ...state } = settled
  noteConnected(session, frame)
  if (session.isOver) return false
  // First, as the welcome acknowledges calls. All else may be large, and stands behind it.
  await tellRefusals(deps, runner.id)
  const { cluster } = deps
  const more = { now: Date.now(), leastPartChars: LEAST_PART_CHARS }
  tell({ t: 'welcome', cluster, settings, ...state, ...(intake && { intake }), ...more })
  tellWakes(deps, runner.id).catch((error: unknown) => deps.log.warn('orders.failed', { error }))
  // Its token was looked at a moment before that.
  if (intake?.state === 'revoked') deps.sockets.refuse(runner.id, 'REVOKED', REVOKED_MESSAGE)
  // Its labels may be other ones than before.
  if (frame.facts) deps.dispatchers.poke(runner.poolId)
  return true
}

interface Settling {
  before: store.Entered
  leaseMs: number
  /** When the connection was opened, by the clock of the database. */
  openedAt: number
}

/** Undefined: the agent has given this connection up meanwhile, and may have got runs over another one. */
async function settle(
  session: Session,
  frame: Hello,
  { before, leaseMs, openedAt }: Settling,
): Promise<Omit<Reconciled, 'held'> | undefined> {
  const { deps, runner } = session
  const end = await deps.sockets.greetings.take(runner)
  if (!end) return undefined
  let placements = frame.holds.length
  try {
    if (session.isOver) return undefined
    const back = returnOf(frame, before)
    if (back) await explainLosses(deps, runner, back)
    if (session.isOver) return undefined
    const isFromBefore = isOfAnotherEpoch(session, frame)
    const beat = { runnerId: runner.id, orgId: runner.orgId, holds: isFromBefore ? [] : frame.holds, leaseMs }
    const what = isFromBefore ? 'operator' : back ? whatWasLost(back) : 'daemon'
    const onEnd = async () => {
      if (isNewStart(frame, before)) await store.noteReconciled(deps.db, runner.id, frame.instance)
    }
    const { held, ...state } = await reconcile(deps, beat, { at: openedAt, what, onEnd })
    placements = Math.max(placements, held)
    return isFromBefore ? { ...state, stale: frame.holds } : state
  } finally {
    end(placements)
  }
}

function noteConnected({ deps, runner }: Session, { version, protocol, holds }: Hello): void {
  probe('agent.connected', { runner: runner.id })
  const facts = lines.connected(runner.id)
  if (!facts) return
  deps.log('agent.connected', {
    runnerId: runner.id,
    runnerName: runner.name,
    version,
    protocol: protocolOf(protocol),
    holds: holds.length,
    ...facts,
  })
}

/** One without a name that comes after one with a name is written down: nothing tells whether it is a copy. */
async function enter(
  { deps, runner }: Session,
  frame: Hello,
  silences: store.Silences,
): Promise<store.Entered | undefined> {
  const hello = { ...frame, protocol: protocolOf(frame.protocol)! }
  if (frame.instance) return store.enter(deps.db, runner.id, hello, silences)
  return deps.db.begin(async (tx) => {
    const before = await store.enter(tx, runner.id, hello, silences)
    if (!before?.isIn || before.instanceHost === null) return before
    if (!deps.sockets.takeovers.take(runner.id)) return before
    const { protocol, version } = hello
    deps.log.warn('agent.taken.over', { runnerId: runner.id, runnerName: runner.name, protocol, version })
    await recordOf(tx, runner, { action: 'runners.takenOver', after: { protocol, version } })
    return before
  })
}

/**
 * An agent that is there has ended the connection by then, so that nobody is kept off. Of a process that numbers its
 * connections the database tells which ones it has given up, but nothing of one that is dead.
 */
function mayBeGivenUp({ openedAt }: Session, { connection }: Hello): boolean {
  const lateMs = connection === undefined ? WELCOME_MS - MARGIN_MS : WELCOME_MS
  return performance.now() - openedAt > lateMs
}

/** It does not know the start before it, or has another machine. Of one that has no name nobody can tell. */
function isCopy({ instance }: Hello, before: store.Entered): boolean {
  if (!instance) return false
  return before.instanceHost !== null || ![instance.id, ...instance.previous].includes(before.instance ?? '')
}

/** It knows the one before it, which has gone, but perhaps not for good: neither is a copy yet. */
function mayBeMoved({ instance }: Hello, { hasLeft, isHeard, instance: before }: store.Entered): boolean {
  return instance !== undefined && (hasLeft || !isHeard) && [instance.id, ...instance.previous].includes(before ?? '')
}

/** Its machine is that of the start before, and has been started anew; nothing shows yet that it is a clone. */
function mayBeStartedAnew({ deps, runner }: Session, { instance }: Hello, before: store.Entered): boolean {
  const { instanceHost, instanceFolder, instanceBoot, heardAgoMs } = before
  if (!instance || instance.boot === instanceBoot) return false
  if (![instance.id, ...instance.previous].includes(before.instance ?? '')) return false
  if (instanceHost !== instance.host && (instanceFolder ?? '') !== instance.folder) return false
  return !deps.sockets.doubts.isClone(runner, instance.boot, heardAgoMs ?? Infinity)
}

/** It comes again by itself, as after any end that was not meant for good. */
function putOff({ socket }: Session, reason = WAIT): false {
  socket.close(TRY_AGAIN, reason)
  return false
}

/**
 * The database was set back since it welcomed the agent. What the agent holds may be given out a second time under the
 * same numbers: it ends all of it, and the runs start again as the database has them.
 */
function isOfAnotherEpoch({ deps, runner }: Session, { instance, holds }: Hello): boolean {
  if (instance?.cluster === undefined || instance.cluster === deps.cluster) return false
  const facts = lines.fromBefore(runner.id)
  if (facts)
    deps.log.warn('agent.from.before', { runnerId: runner.id, runnerName: runner.name, holds: holds.length, ...facts })
  return true
}

/** Compared with the start whose hello came to its end: nothing was done for one whose hello was cut off. */
function isNewStart({ instance }: Hello, before: store.Entered): boolean {
  const { id = null, boot = null, process = null } = instance ?? {}
  const { reconciledInstance, reconciledBoot, reconciledProcess } = before
  return id !== reconciledInstance || boot !== reconciledBoot || process !== reconciledProcess
}

function returnOf({ instance }: Hello, before: store.Entered): Return | undefined {
  if (!instance || before.reconciledInstance === null) return undefined
  const { id, boot, process = null } = instance
  const { reconciledInstance, reconciledBoot, reconciledProcess } = before
  // An agent of an earlier release does not say which process it is.
  const sameProcess = process === null || reconciledProcess === null || process === reconciledProcess
  return { sameInstance: id === reconciledInstance && sameProcess, sameBoot: boot === reconciledBoot }
}

function turnAway({ socket, tell }: Session, code: RefusalCode, message: string): false {
  tell({ t: 'refused', code, message })
  socket.close(POLICY, message.slice(0, REASON_CHARS))
  return false
}

/**
 * Tells the owner that somebody else has this runner's key. A copy that tries again and again is written down once a
 * minute.
 */
async function reportCopy({ deps, runner }: Session, { instance }: Hello): Promise<void> {
  const facts = lines.copy(runner.id)
  const host = instance?.host
  if (facts) deps.log.warn('agent.copy.refused', { runnerId: runner.id, runnerName: runner.name, host, ...facts })
  await deps.db.begin(async (tx) => {
    const { isNews } = await store.noteCopy(tx, runner.id)
    if (isNews) await recordOf(tx, runner, { action: 'runners.copyRefused' })
  })
}

async function recordOf(tx: Tx, { id, name, orgId }: RunnerIdentity, change: Omit<Change, 'target'>): Promise<void> {
  await record(tx, ourselves(orgId), { ...change, target: { type: 'runner', id, name } })
}
