import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type Blocked, isFinal, isSuspended, type Loss, type RunError } from '@windlass/shared/model/run.ts'
import type { Cause, Why } from '@windlass/shared/model/why.ts'
import type { Config } from '../config.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Caller } from '../actor.ts'
import type { Dispatchers } from '../dispatch/dispatcher.ts'
import type { RestoredHold } from '../dispatch/restored-hold.ts'
import { stopDeadlineMs } from '../engine/commit/cancel.ts'
import { mayTimeOutInQueue } from '../engine/rules/transitions.ts'
import type { TermsReader } from '../workflows/terms.ts'
import { queueCauses, type QueueFacts } from './why-queue.ts'
import { lossesOf } from './store-losses.ts'
import * as store from './store-why.ts'
import { executing } from './why-executing.ts'
import { waitCause, waitsSummary } from './why-waits.ts'
import { causeOf, refusal, silence, timeText } from './why-texts.ts'

type Clocks = Parameters<typeof silence>[1]

const LOSSES_SHOWN = 20

/** What is found in the database about one run, at one moment. */
export interface Facts extends QueueFacts {
  run: store.Situation
  waits: store.Wait[]
  losses: Loss[]
  /** When a run that is being stopped ends in any case; null where that is not to come any more. */
  forcedAt: Date | null
  /** When its time was over, where that is not noted yet, as its agent may know more; null: it is not over. */
  overAt: Date | null
}

type WhyDeps = {
  db: Db
  config: Config
  versionTerms: TermsReader
  dispatchers: Pick<Dispatchers, 'reservations'>
  restoredHold: RestoredHold
}

/** Why a run is where it is: what it waits for, since when, and who could change that. */
export async function whyOf(deps: WhyDeps, caller: Caller, id: RunId): Promise<Why> {
  // One snapshot: between two of them a run could leave the queue and be in none of our answers.
  const facts = await deps.db.begin('isolation level repeatable read read only', (tx) =>
    look(tx, deps, caller.orgId, id),
  )
  if (!facts) throw new Fault('NOT_FOUND', { run: id })
  // By other connections, which a transaction does not wait for.
  const heldMs = facts.run.isInQueue ? await deps.restoredHold.restMs(facts.run.poolId) : 0
  return explain({ ...facts, heldMs }, deps.config)
}

async function look(tx: Tx, deps: WhyDeps, orgId: OrgId, id: RunId): Promise<Omit<Facts, 'heldMs'> | undefined> {
  const run = await store.situation(tx, orgId, id)
  if (!run) return undefined
  const isQueued = run.status === 'queued' || run.isInQueue
  const [losses, waits, runners, holders, reserved, forcedAt, overAt] = await Promise.all([
    lossesOf(tx, id, LOSSES_SHOWN),
    isSuspended(run.status) ? store.waits(tx, id, run.attempt) : [],
    isQueued ? store.runnersOf(tx, run.poolId) : [],
    run.waitsInGroup === null ? [] : store.holders(tx, run.waitsInGroup),
    isQueued ? store.reservedFor(tx, run, deps.dispatchers.reservations(run.poolId)) : [],
    forcedAtOf(tx, deps, run),
    overAtOf(tx, deps, run),
  ])
  return { run, losses, waits, runners, holders, reserved, forcedAt, overAt }
}

/** As `setStopDeadlines` has set it. Its jobs do not say it: one of them is for many runs. */
async function forcedAtOf(tx: Tx, deps: WhyDeps, run: store.Situation): Promise<Date | null> {
  const since = run.cancelRequestedAt ?? run.timedOutAt
  if (since === null || isFinal(run.status)) return null
  const at = new Date(since.getTime() + stopDeadlineMs(deps.config, await deps.versionTerms.get(run.versionId, tx)))
  return at > run.now ? at : null
}

async function overAtOf(tx: Tx, deps: WhyDeps, run: store.Situation): Promise<Date | null> {
  if (run.place === null || run.timedOutAt !== null || isFinal(run.status) || run.status === 'cancelling') return null
  const { wallTimeoutMs } = (await deps.versionTerms.get(run.versionId, tx)).descriptor
  const at = new Date(run.createdAt.getTime() + (wallTimeoutMs ?? Infinity))
  return at <= run.now ? at : null
}

/** The rules in one place; everything that they need has been looked up. */
export function explain(facts: Facts, clocks: Clocks): Why {
  const { run } = facts
  const { causes, runners } = reasons(facts, clocks)
  return {
    run: run.id,
    status: run.status,
    since: sinceOf(run).getTime(),
    summary: summaryOf(facts, causes),
    process: processOf(run),
    losses: facts.losses,
    causes,
    runners,
  }
}

type Reasons = { causes: Cause[]; runners: Why['runners'] }

function reasons(facts: Facts, clocks: Clocks): Reasons {
  const { run } = facts
  if (isOvertime(run)) return stopping(facts, clocks)
  if (facts.overAt !== null) return overdue(run, facts.overAt, clocks)
  if (isSuspended(run.status)) return waiting(facts, clocks)
  if (run.status === 'queued') return withQueueTimeout(run, queueCauses(run, facts))
  const again = 'it is given to another runner and starts again from the top, or fails when its retries are used up'
  const silent =
    run.status === 'cancelling'
      ? silence(run, clocks, 'the run ends without its word')
      : silence(run, clocks, run.status === 'pending' ? 'the run goes back into the queue' : again)
  return { causes: [...troubles(silent, run), movingCause(facts)], runners: [] }
}

/** What is wrong between the run's agent and the coordinator. */
function troubles(silent: Cause | undefined, run: store.Situation): Cause[] {
  return [silent, refusal(run)].filter((cause) => cause !== undefined)
}

function movingCause(facts: Facts): Cause {
  const { run } = facts
  if (run.status === 'pending') return starting(run)
  if (run.status === 'cancelling') return cancelling(facts)
  if (run.status === 'running') return executing(run, sinceOf(run))
  return finished(run)
}

function withQueueTimeout(run: store.Situation, found: Reasons): Reasons {
  const [first, ...rest] = found.causes
  if (!first || run.queueTimeoutAt === null || !mayTimeOutInQueue(run)) return found
  const message = `${first.message} When it has not begun by ${timeText(run.queueTimeoutAt)}, it fails with RUN_TIMED_OUT.`
  return { ...found, causes: [{ ...first, message }, ...rest] }
}

function starting(run: store.Situation): Cause {
  return causeOf({
    code: 'STARTING',
    message: `The runner ${run.runner} has got it and starts its process.`,
    since: run.offeredAt ?? run.claimedAt,
    until: null,
    change: 'It ends by itself: it begins, or goes back into the queue when the runner does not take it.',
  })
}

/** Whether its time is over, so that nothing goes on in it whatever it does; a cancel that comes later counts. */
const isOvertime = ({ status, timedOutAt }: store.Situation) =>
  timedOutAt !== null && !isFinal(status) && status !== 'cancelling'

const USED_UP = 'Its time is used up: its process is stopped, and it fails with RUN_TIMED_OUT.'

function stopping({ run, forcedAt }: Facts, clocks: Clocks): Reasons {
  const silent = silence(run, clocks, 'it fails with RUN_TIMED_OUT')
  const answers = run.status === 'awaiting_input' ? ' It takes no answer any more.' : ''
  const inTime = silent ? ' If it ended before that and its agent tells so later, that counts.' : ''
  const cause = causeOf({
    code: 'CANCELLING',
    message: `${USED_UP}${inTime}${answers}${forcedText(forcedAt)}`,
    since: run.timedOutAt,
    until: forcedAt,
    change: 'It ends by itself. A longer `timeout` in workflow.jsonc counts for runs of the version that has it.',
  })
  return { causes: [...troubles(silent, run), cause], runners: [] }
}

function overdue(run: store.Situation, overAt: Date, clocks: Clocks): Reasons {
  const silent = silence(run, clocks, 'it fails with RUN_TIMED_OUT')
  const cause = causeOf({
    code: 'CANCELLING',
    message:
      `The time from its creation on was used up at ${timeText(overAt)}. It fails with RUN_TIMED_OUT once its agent ` +
      'was heard or its lease is over, unless its agent tells that it had ended before that.',
    since: overAt,
    change: 'It ends by itself. A longer `timeout` in workflow.jsonc counts for runs of the version that has it.',
  })
  return { causes: [...troubles(silent, run), cause], runners: [] }
}

const forcedText = (forcedAt: Date | null) =>
  forcedAt === null ? '' : ` At ${timeText(forcedAt)} it ends in any case.`

function cancelling({ run, forcedAt }: Facts): Cause {
  const by = run.cancelledBy === null ? '' : ` by ${run.cancelledBy}`
  return causeOf({
    code: 'CANCELLING',
    message: `Its end was asked for${by}; it is cancelled as soon as its processes are gone.${forcedText(forcedAt)}`,
    since: run.cancelRequestedAt,
    until: forcedAt,
    change: 'It ends by itself: the program has its time for cleaning up, then it is killed.',
  })
}

function finished(run: store.Situation): Cause {
  const error = run.error === null ? null : (JSON.parse(run.error) as RunError)
  return causeOf({
    code: 'FINISHED',
    message: error ? `It failed. ${error.code}: ${error.message}` : `It is ${run.status}.`,
    since: run.finishedAt,
    change: `Nobody: a finished run does not change. \`windlass runs retry ${run.id}\` starts a new one with the same input.`,
  })
}

function waiting(facts: Facts, clocks: Clocks): Reasons {
  const { run, waits } = facts
  if (run.blocked !== null) return { causes: [blocked(run, JSON.parse(run.blocked) as Blocked)], runners: [] }
  const silent = silence(run, clocks, 'it continues on another runner, with nothing lost')
  const open = waits.map((wait) => waitCause(run, wait))
  const { causes, runners } = resuming(facts)
  return { causes: [...troubles(silent, run), ...causes, ...open], runners }
}

/** Something is there for the run, and it does not execute yet. */
function resuming(facts: Facts): Reasons {
  const { run } = facts
  const about = { code: 'RESUMING', since: run.suspendedAt } as const
  if (run.isInQueue) {
    const found = queueCauses(run, facts)
    const message =
      'What it waited for is there, and it waits for a runner that continues it. Continued runs go before new ones.'
    const change = 'A free slot in its pool.'
    return { ...found, causes: [causeOf({ ...about, since: run.enteredQueueAt, message, change }), ...found.causes] }
  }
  const only = (message: string, more: { since?: Date | null; until?: Date | null } = {}): Reasons => ({
    causes: [causeOf({ ...about, message, change: 'It ends by itself.', ...more })],
    runners: [],
  })
  if (run.place === 'replaying')
    return only(`The runner ${run.runner} leads a new process to where the last one stood.`, { since: run.offeredAt })
  if (run.entersAt !== null)
    return only(`Continuing it has failed; it is tried again at ${timeText(run.entersAt)}.`, { until: run.entersAt })
  if (run.undelivered === 0) return { causes: [], runners: [] }
  const since = run.completedAt ?? run.suspendedAt
  if (run.place === 'parked') return only(parkedText(run), { since })
  return only('What it waited for is there, and it enters the queue.', { since })
}

function parkedText({ runner, lastHeardAt, completedAt, leaseExpiresAt }: store.Situation): string {
  const goesOn = `its process goes on as soon as the runner ${runner} has heard of it and has a free slot`
  const isUnheard = completedAt !== null && (lastHeardAt === null || lastHeardAt < completedAt)
  if (!isUnheard || leaseExpiresAt === null) return `What it waited for is there; ${goesOn}.`
  return (
    `What it waited for is there; ${goesOn}. ${runner} has not been heard of since; ` +
    `when it is not until ${timeText(leaseExpiresAt)}, the run continues on another runner, with nothing lost.`
  )
}

function blocked(run: store.Situation, { at, message }: Blocked): Cause {
  return causeOf({
    code: 'BLOCKED',
    message,
    since: run.blockedAt ?? run.suspendedAt,
    change: `Somebody decides: \`windlass runs restart ${run.id}\` starts it again from the top, \`windlass runs retry ${run.id}\` starts a new run, \`windlass runs cancel ${run.id}\` ends it.`,
    ...(at !== '' && { at }),
  })
}

/** When the run came into its status. */
function sinceOf(run: store.Situation): Date {
  if (run.finishedAt) return run.finishedAt
  if (run.status === 'cancelling') return run.cancelRequestedAt ?? run.queuedAt
  if (isSuspended(run.status)) return run.suspendedAt ?? run.queuedAt
  if (run.status === 'running') return run.lastMoveAt ?? notBefore(run)
  return (run.status === 'pending' ? run.claimedAt : null) ?? run.queuedAt
}

/**
 * Of a run that executes, where its log is too long to look for its last move: that was after it was given to its
 * runner, and after it last began to wait. `startedAt` is that of the first attempt.
 */
function notBefore({ startedAt, claimedAt, suspendedAt, queuedAt }: store.Situation): Date {
  return new Date(Math.max(...[startedAt, claimedAt, suspendedAt, queuedAt].map((at) => at?.getTime() ?? 0)))
}

const PROCESS_STATES = { hot: 'executing', replaying: 'replaying', parked: 'parked' } as const

function processOf(run: store.Situation): Why['process'] {
  if (run.runnerId === null || run.runner === null || run.finishedAt !== null) return null
  const state = run.status === 'pending' ? 'starting' : PROCESS_STATES[run.place ?? 'hot']
  return { place: state, runner: { id: run.runnerId, name: run.runner } }
}

function summaryOf({ run, waits }: Facts, causes: Cause[]): string {
  const [first] = causes
  if (!first) return 'It waits, and nothing in its journal is open; the coordinator looks after such runs by itself.'
  const isAboutWaits = first.code === 'SLEEP' || first.code === 'INPUT' || first.code === 'CHILD'
  return (isAboutWaits && isSuspended(run.status) && waitsSummary(waits)) || first.message
}
