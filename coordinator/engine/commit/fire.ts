import { isFinal } from '@windlass/shared/model/run.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Config } from '../../config.ts'
import { isLockTimeout, isStatementTimeout, mayPass, type Tx } from '../../db/client.ts'
import { type TimedOut, timeOutQuestions } from './questions.ts'
import { type CancelDeps, setStopDeadlines } from './cancel.ts'
import { moveRuns } from './move-runs.ts'
import { readHolds, writeHolds } from '../rules/holds.ts'
import { complete, enterNow, mayTimeOutInQueue } from '../rules/transitions.ts'
import type { Moving } from '../rules/run.ts'
import { takeTurns } from './throttle.ts'
import { timeOut } from './time-out.ts'
import {
  AT_ONCE,
  type BehindDeps,
  endsRuns,
  type How,
  isNothing,
  passedOver,
  putLocked,
  withoutBehind,
} from './timers-behind.ts'
import { holdBack, type HoldDeps } from './held-timers.ts'
import { givesEntryUp } from './give-entry-up.ts'
import { type Entry, renewQueueTimeouts, yetToEnter } from './late-entries.ts'
import { warmTerms } from './versions.ts'
import * as runStore from '../store/runs.ts'
import * as store from '../store/timers.ts'

/** When to look again at what the look has left out. */
const LOOK_MS = 100

type FireDeps = CancelDeps & { log: Log; signal?: AbortSignal | undefined } & BehindDeps & HoldDeps

/**
 * Does what is due by now, the most overdue first, or until the signal fires; what may take long is done behind it.
 * Answers in how many milliseconds to look again; null: nothing is due soon.
 */
export async function fireDue(deps: FireDeps, signal?: AbortSignal): Promise<number | null> {
  for (;;) {
    if (signal?.aborted) return null
    const passed = passedOver(deps)
    const found = await deps.floors.timers.begin((floor) => store.upcoming(deps.db, AT_ONCE, passed, floor))
    const due = found.filter((timer) => timer.inMs <= 0)
    const next = found.find((timer) => timer.inMs > 0)?.inMs ?? null
    if (due.length === 0) return isNothing(passed) ? next : Math.min(LOOK_MS, next ?? Infinity)
    const own = { ...deps, signal }
    await fireFree(own, await holdBack(own, due, (timers) => fireFree(own, timers)))
  }
}

async function fireFree(deps: FireDeps, free: store.Upcoming[]): Promise<void> {
  const mine = await withoutBehind(deps, free, (timers, how) => fireOrPutOff(deps, timers, how))
  await fireOrPutOff(deps, mine, 'shared')
}

/** For the locks of its limits, which an org may hold for long. */
const LIMITED_MS = 1000
const LIMITED_PUT_OFF_MS = 3000

const PUT_OFF_MS = 60_000

/** One timer that fails time and again must not hold up the others behind it. */
async function fireOrPutOff(deps: FireDeps, due: store.Upcoming[], how: How): Promise<void> {
  if (due.length === 0) return
  try {
    const locked = await fire(deps, due, how)
    noteEntered(deps, due)
    if (locked.length > 0) putLocked(deps, locked, (timers, again) => fireOrPutOff(deps, timers, again))
  } catch (error) {
    if (isLockTimeout(error)) return putOffLocked(deps, due, how)
    // What takes too long at once takes as long the next time. Halves find it in few tries.
    if (mayPass(error) && (!isStatementTimeout(error) || deps.signal?.aborted)) throw error
    if (due.length > 1) {
      const middle = due.length >> 1
      for (const half of [due.slice(0, middle), due.slice(middle)]) await fireOrPutOff(deps, half, how)
      return
    }
    deps.log.error('timer.failed', { ...due[0], error })
    if (await givesEntryUp(deps, due[0]!, error)) return
    await store.putOff(deps.db, due, PUT_OFF_MS)
  }
}

/** What keeps all runs from entering says nothing of one. */
function noteEntered({ timersBehind }: FireDeps, due: readonly store.Upcoming[]): void {
  const entered = due.filter(({ kind }) => kind === 'enqueue')
  if (entered.length > 0) timersBehind.stubborn.committed(() => entered.map(({ runId }) => runId))
}

/** For the rows of runs: whoever has one for longer is writing very much, of that org. */
const LOCK_MS = 500
const LOCKED_PUT_OFF_MS = 1000

/** It was one org whose locks were waited for: the others are done at once. */
async function putOffLocked(deps: FireDeps, due: store.Upcoming[], how: How): Promise<void> {
  const ofOrgs = [...Map.groupBy(due, ({ orgId }) => orgId).values()]
  if (ofOrgs.length === 1) return putOffAll(deps, due, how)
  await Promise.all(ofOrgs.map((own) => fireOrPutOff(deps, own, how)))
}

/** With those of the org that wait behind others: else these waited for its locks once more in each of its turns. */
async function putOffAll(deps: FireDeps, due: store.Upcoming[], how: How): Promise<void> {
  const { ends, answers, limited, locked } = deps.timersBehind
  const { orgId } = due[0]!
  const isLimited = how === 'limited'
  const waiting = how === 'shared' ? [] : (isLimited ? limited : locked).takeOut(orgId, true)
  if (how !== 'alone' && due.some(endsRuns)) waiting.push(...ends.takeOut(orgId, isLimited))
  if (how !== 'alone' && due.some(({ kind }) => kind === 'input')) waiting.push(...answers.takeOut(orgId, isLimited))
  await store.putOff(deps.db, [...due, ...waiting], isLimited ? LIMITED_PUT_OFF_MS : LOCKED_PUT_OFF_MS)
}

const keyOf = ({ runId, kind, n }: store.DueTimer) => `${runId}/${kind}/${n}`

/** Answers those of which others have the run. */
async function fire(deps: FireDeps, due: store.Upcoming[], how: How): Promise<store.Upcoming[]> {
  const ending = due.filter(endsRuns).map((timer) => timer.runId)
  await warmTerms(deps, ending)
  const skipsLocked = how === 'shared'
  const locking = { ids: due.map((timer) => timer.runId), ending, lockMs: LOCK_MS, skipsLocked }
  const { stopped, locked } = await moveRuns(deps, locking, async (tx, runs) => {
    if (how === 'limited') await tx`select set_config('lock_timeout', ${String(LIMITED_MS)}, true)`
    const locked = skipsLocked ? withoutLock(due, runs, new Set(ending)) : []
    const mine = locked.length === 0 ? due : due.filter((timer) => !locked.includes(timer))
    const there = new Map((await store.take(tx, mine)).map((timer) => [keyOf(timer), timer.holds]))
    // In the order in which they were due: of two sleeps that raced while nobody looked, the shorter one has won.
    const taken = mine.filter((timer) => there.has(keyOf(timer)))
    const answers = await timedOutInputs(tx, taken)
    const throttled = await takeTheirTurns(tx, taken, runs, there)
    const renewed = await renewQueueTimeouts({ ...deps, tx }, entriesOf(taken, { runs, throttled }))
    const queued = runsOf(taken, 'queue-timeout', runs).filter((run) => !renewed.has(run))
    const outside = await yetToEnter(tx, queued)
    const touched = new Set<Moving>()
    for (const timer of taken) {
      const run = runs.get(timer.runId)
      if (!run || throttled.has(keyOf(timer))) continue
      if (timer.kind === 'queue-timeout' && (renewed.has(run) || outside.has(run))) continue
      await act({ ...deps, tx }, run, timer, answers)
      touched.add(run)
    }
    await runStore.leaveQueue(
      tx,
      [...touched].filter((run) => isFinal(run.status)).map((run) => run.id),
    )
    await store.insert(
      tx,
      taken.flatMap((timer) => againLater(deps, timer, { run: runs.get(timer.runId), outside })),
    )
    // What else comes due for a run that is being stopped does not put its deadline off.
    const overtime = new Set(taken.filter(({ kind }) => kind === 'wall-timeout').map(({ runId }) => runId))
    const stopped = [...touched].filter((run) => overtime.has(run.id) && isBeingStopped(run))
    await setStopDeadlines(tx, deps, stopped)
    return { moved: touched, answer: { stopped, locked } }
  })
  tellStops(deps, new Set(stopped.flatMap(({ runnerId }) => runnerId ?? [])))
  return locked
}

/** Those of which the run was left out, or the parent of one that may end. */
function withoutLock(
  due: readonly store.Upcoming[],
  runs: ReadonlyMap<string, Moving>,
  ending: ReadonlySet<string>,
): store.Upcoming[] {
  return due.filter(({ runId }) => {
    const run = runs.get(runId)
    return !run || (ending.has(runId) && run.parentRunId !== null && !run.parent)
  })
}

/** Timers of others do not wait for that: it is said with each heartbeat as well. */
function tellStops(deps: FireDeps, runnerIds: ReadonlySet<string>): void {
  for (const runnerId of runnerIds)
    deps.tellCancels(runnerId).catch((error: unknown) => deps.log.warn('orders.failed', { error }))
}

/**
 * Runs that would enter the queue now, but for their throttle, take their turns. Answers the timers of those that wait
 * for theirs, and for how long; they are set anew.
 */
async function takeTheirTurns(
  tx: Tx,
  taken: readonly store.DueTimer[],
  runs: Map<string, Moving>,
  holds: Map<string, string | null>,
): Promise<Map<string, number>> {
  const arrivals = taken.flatMap((timer) => {
    const { throttle } = readHolds(holds.get(keyOf(timer)) ?? null)
    const isQueued = runs.get(timer.runId)?.status === 'queued'
    return throttle && !throttle.isTaken && isQueued ? [{ id: timer.runId, timer, throttle }] : []
  })
  const waits = await takeTurns(tx, arrivals)
  const later = arrivals.flatMap((one) => {
    const inMs = waits.get(one.id)!
    return inMs > 0 ? [{ ...one, inMs }] : []
  })
  if (later.length > 0) await store.enterLater(tx, later)
  await store.insert(
    tx,
    later.map(({ timer: { runId, kind, n }, throttle, inMs }) => {
      return { runId, kind, n, due: { inMs }, holds: writeHolds({ throttle: { ...throttle, isTaken: true } }) }
    }),
  )
  return new Map(later.map(({ timer, inMs }) => [keyOf(timer), inMs]))
}

type Kind = store.DueTimer['kind']

const runsOf = (taken: readonly store.DueTimer[], kind: Kind, runs: ReadonlyMap<string, Moving>) =>
  taken.flatMap((timer) => (timer.kind === kind ? (runs.get(timer.runId) ?? []) : []))

/** What enters the queue by these timers, now or later. */
const entriesOf = (
  taken: readonly store.DueTimer[],
  { runs, throttled }: { runs: ReadonlyMap<string, Moving>; throttled: ReadonlyMap<string, number> },
): Entry[] =>
  taken.flatMap((timer) => {
    const run = runs.get(timer.runId)
    return run && timer.kind === 'enqueue' ? [{ run, inMs: throttled.get(keyOf(timer)) ?? 0 }] : []
  })

const isBeingStopped = (run: Moving) => run.timedOut && run.place !== null

/** When to look again whether a run has entered the queue. */
const ENTERED_MS = 1000

/** A run that is just being offered may come back into the queue, where its time is up. */
function againLater(
  deps: { config: Config },
  { runId, kind, n }: store.DueTimer,
  { run, outside }: { run: Moving | undefined; outside: ReadonlySet<Moving> },
): store.NewTimer[] {
  if (kind !== 'queue-timeout' || !run) return []
  if (outside.has(run)) return [{ runId, kind, n, due: { inMs: ENTERED_MS } }]
  const isOffered = run.status === 'pending' && mayTimeOutInQueue(run)
  return isOffered ? [{ runId, kind, n, due: { inMs: deps.config.offerMs } }] : []
}

async function act(
  deps: { tx: Tx } & Pick<FireDeps, 'versionTerms' | 'databaseClock'>,
  run: Moving,
  { kind, n }: store.DueTimer,
  answers: Map<string, Completion>,
): Promise<void> {
  switch (kind) {
    case 'sleep':
      return complete(run, { n, state: 'done', result: 'null' })
    case 'input': {
      const completion = answers.get(`${run.id}/${n}`)
      return completion && complete(run, completion)
    }
    case 'enqueue':
      return enterNow(run)
    case 'queue-timeout':
    case 'wall-timeout':
      timeOut(run, kind, deps.databaseClock.now(), await deps.versionTerms.get(run.versionId, deps.tx))
  }
}

/** Questions whose time is up, and what their calls get. */
async function timedOutInputs(tx: Tx, taken: store.DueTimer[]): Promise<Map<string, Completion>> {
  const due = taken.filter(({ kind }) => kind === 'input')
  if (due.length === 0) return new Map()
  const rows = await timeOutQuestions(tx, due)
  return new Map(rows.map((row) => [`${row.runId}/${row.n}`, unanswered(row)]))
}

/** What a call gets whose question was not answered in time. */
export function unanswered({ n, id, prompt, onTimeout }: Omit<TimedOut, 'runId'>): Completion {
  if (onTimeout !== null) return { n, state: 'done', result: onTimeout }
  const message = `Nobody answered in time: ${prompt.slice(0, 200)}`
  const error = { name: 'InputTimedOutError', code: 'INPUT_TIMED_OUT', message, detail: { inputId: id } }
  return { n, state: 'failed', result: JSON.stringify(error) }
}
