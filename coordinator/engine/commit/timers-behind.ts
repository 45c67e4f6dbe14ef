import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../../db/client.ts'
import { createStubborn, type Stubborn } from '../../db/stubborn.ts'
import * as runStore from '../store/runs.ts'
import { limitedAmong, type PassedOver, type Upcoming } from '../store/timers.ts'
import type { Timers } from './clock.ts'
import { leftOut } from './left-out.ts'
import type { LongEnds } from './long-ends.ts'
import { answerBytes } from './questions.ts'
import { type Act, createOrgLine, openLimitedSeats, type OrgLine, type Weighed } from './org-line.ts'

/** 10,000 runs that wake in the same moment are 50 transactions. */
export const AT_ONCE = 200

type TimerLine = OrgLine<Upcoming>

/** What nobody else waits for: it may have much to write, or wait for the locks of limits. */
export interface TimersBehind {
  /** What ends runs. */
  ends: TimerLine
  /** Questions whose time is up, of orgs with large answers. */
  answers: TimerLine
  /** All else of runs that are limited. */
  limited: TimerLine
  /** What is due of runs that others had locked. */
  locked: TimerLine
  /** What may have to wait for somebody whom we have not heard yet, of runs with long journals. */
  inDoubt: OrgLine<DueOfRun>
  /** Runs that cannot be let into the queue. */
  stubborn: Stubborn
}

/** What is due of a run. */
export interface DueOfRun {
  orgId: OrgId
  runId: RunId
  timers: Upcoming[]
}

/** Entries of the runs that one transaction ends: some 20 ms. What has more is ended alone, see `LongEnds`. */
const ENTRIES_AT_ONCE = 500
/** Of answers, which have a MiB at most each: they are read, written into the journals and told to agents in one go. */
const BYTES_AT_ONCE = 2 * 1024 * 1024
/** Of answers in a pass, for which the sleeps in it wait: some 30 ms. */
const BYTES_BESIDE_WAKES = 512 * 1024

/** Of runs that are asked about together. One that has more is asked about with those before it alone. */
const ENTRIES_IN_DOUBT = 5000

/** Each may have a MiB of an answer, or 500 entries to close. */
const LOCKED_AT_ONCE = 10

/** Number of runs that a look leaves out one by one: it compares each timer with all of them. */
const RUNS_LEFT_OUT = 2 * AT_ONCE

export function openTimersBehind({ db, log, timers }: { db: Db; log: Log; timers: Timers }): TimersBehind {
  const onFree = () => timers.expect(0)
  const shared = { log, of: 'timers behind others', mostItems: AT_ONCE, seats: openLimitedSeats(), onFree }
  const lockedWith = (ids: RunId[]) => runStore.parentsOf(db, ids)
  return {
    ends: createOrgLine({ ...shared, most: ENTRIES_AT_ONCE, lockedWith }),
    answers: createOrgLine({ ...shared, most: BYTES_AT_ONCE }),
    limited: createOrgLine({ ...shared, most: BYTES_AT_ONCE }),
    locked: createOrgLine({ ...shared, most: LOCKED_AT_ONCE, mostItems: LOCKED_AT_ONCE, lockedWith }),
    inDoubt: createOrgLine({ ...shared, most: ENTRIES_IN_DOUBT }),
    stubborn: createStubborn(),
  }
}

/** Each may bring something to the next ones until it has stopped. */
export async function stopBehind({ ends, answers, limited, locked, inDoubt }: TimersBehind): Promise<void> {
  await inDoubt.stop()
  await Promise.all([ends, answers, limited].map((line) => line.stop()))
  await locked.stop()
}

export type BehindDeps = { db: Db; longEnds: LongEnds; timersBehind: TimersBehind }

const linesOf = ({ ends, answers, limited, locked }: TimersBehind) => [ends, answers, limited, locked]

const orgsOf = (line: { here(): ReadonlyMap<OrgId, unknown> }): OrgId[] => [...line.here().keys()]

const heldBy = (lines: readonly TimerLine[]) => lines.flatMap((line) => line.held())

/**
 * What the look for what is due leaves out. Of a run that is limited, in doubt or locked by others, and has something
 * here, nothing is done before it: of two sleeps the shorter one has to win.
 */
export function passedOver(deps: BehindDeps): PassedOver {
  const taken = takenHere(deps)
  const { inDoubt } = deps.timersBehind
  const { orgs, keys } = leftOut(inDoubt.here(), ({ runId }) => runId, RUNS_LEFT_OUT)
  return {
    endsOf: [...taken.endsOf, ...orgs],
    endsOfRuns: taken.endsOfRuns,
    questionsOf: [...taken.questionsOf, ...orgs],
    wakesOf: [...taken.wakesOf, ...orgs],
    runs: [...new Set([...taken.runs, ...keys])],
    runsOf: [...taken.runsOf, ...orgsOf(inDoubt)],
  }
}

function takenHere({ longEnds, timersBehind }: BehindDeps): PassedOver {
  const { ends, answers, limited, locked } = timersBehind
  const out = leftOut(limited.here(), ({ runId }) => runId, RUNS_LEFT_OUT)
  const held = leftOut(locked.here(), ({ runId }) => runId, RUNS_LEFT_OUT)
  return {
    endsOf: [...orgsOf(ends), ...longEnds.orgs(AT_ONCE), ...held.orgs],
    endsOfRuns: longEnds.ids(),
    questionsOf: [...orgsOf(answers), ...out.orgs, ...held.orgs],
    wakesOf: [...out.orgs, ...held.orgs],
    runs: [...new Set([...longEnds.held(), ...heldBy(linesOf(timersBehind)), ...out.keys, ...held.keys])],
    runsOf: [...orgsOf(limited), ...orgsOf(locked)],
  }
}

export const isNothing = (passed: PassedOver) => Object.values(passed).every((list: unknown[]) => list.length === 0)

/**
 * `shared`: several orgs wait for each other, so nobody waits for a run that somebody has locked. `alone`: of one org.
 * `limited`: of one org, and it may wait for the locks of its limits.
 */
export type How = 'shared' | 'alone' | 'limited'

export type ActOn = (timers: Upcoming[], how: How) => Promise<void>

export const endsRuns = ({ kind }: Upcoming) => kind === 'queue-timeout' || kind === 'wall-timeout'

/**
 * What this pass does. What ends runs has its turn behind it, and so has what may wait for the locks of limits, and the
 * questions of those orgs whose answers are too large for it; an org that has only small ones does not wait for these.
 */
export async function withoutBehind(deps: BehindDeps, due: Upcoming[], act: ActOn): Promise<Upcoming[]> {
  const { runs } = takenHere(deps)
  const free = due.filter(({ runId }) => !runs.includes(runId))
  const limitedIds = await limitedAmong(
    deps.db,
    free.map(({ runId }) => runId),
  )
  const weighed = (timer: Upcoming, weight: number) => ({ item: timer, weight, isLimited: limitedIds.has(timer.runId) })
  const { ends, answers, limited } = deps.timersBehind
  const beside = (line: TimerLine): Act<Upcoming> => {
    return (timers, isLimited) => act(withoutHeld(deps, timers, line), isLimited ? 'limited' : 'shared')
  }
  const ending = await weighedEnds(deps.db, free.filter(endsRuns), weighed)
  ends.add(ending.filter(isLight), beside(ends))
  for (const one of ending) if (!isLight(one)) endLong(deps.longEnds, one, act)
  const large = await largeAnswers(
    deps.db,
    free.filter(({ kind }) => kind === 'input'),
  )
  answers.add(
    large.map(({ timer, weight }) => weighed(timer, weight)),
    beside(answers),
  )
  const behind = new Set(large.map(({ timer }) => timer))
  const wakes = free.filter((timer) => !endsRuns(timer) && !behind.has(timer)).map((timer) => weighed(timer, 0))
  limited.add(
    wakes.filter(({ isLimited }) => isLimited),
    beside(limited),
  )
  return wakes.filter(({ isLimited }) => !isLimited).map(({ item }) => item)
}

/** One transaction of the org waits for those that have these runs, and nobody else does. */
export function putLocked(deps: BehindDeps, timers: readonly Upcoming[], act: ActOn): void {
  const { locked } = deps.timersBehind
  locked.add(
    timers.map((item) => ({ item, weight: 1, isLimited: true })),
    (some) => act(withoutHeld(deps, some, locked), 'alone'),
  )
}

/** Those whose runs others hold by now are found again: in this transaction all would wait for them. */
function withoutHeld({ longEnds, timersBehind }: BehindDeps, due: Upcoming[], own: TimerLine): Upcoming[] {
  const others = linesOf(timersBehind).filter((line) => line !== own)
  const held = new Set([...longEnds.held(), ...heldBy(others)])
  return due.filter(({ runId }) => !held.has(runId))
}

type Weigh = (timer: Upcoming, weight: number) => Weighed<Upcoming>

async function weighedEnds(db: Db, due: Upcoming[], weighed: Weigh): Promise<Weighed<Upcoming>[]> {
  if (due.length === 0) return []
  const entries = await runStore.entriesOf(
    db,
    due.map(({ runId }) => runId),
  )
  return due.map((timer) => weighed(timer, entries.get(timer.runId) ?? 0))
}

export const isLight = ({ weight }: { weight: number }) => weight <= ENTRIES_AT_ONCE

/** One at a time, so that the others of the org do not wait for it. Not found again, while it waits for its turn. */
function endLong(longEnds: LongEnds, { item, isLimited }: Weighed<Upcoming>, act: ActOn): void {
  const { runId, orgId } = item
  if (longEnds.has(runId)) return
  longEnds.add({
    orgId,
    runIds: [runId],
    act: async (ids) => (ids.length > 0 ? act([item], isLimited ? 'limited' : 'alone') : undefined),
  })
}

/** The questions of those orgs whose answers do not fit into a pass beside the smaller ones of others. */
async function largeAnswers(db: Db, questions: Upcoming[]): Promise<{ timer: Upcoming; weight: number }[]> {
  if (questions.length === 0) return []
  const bytes = await answerBytes(db, questions)
  const weighed = questions.map((timer, i) => ({ timer, orgId: timer.orgId, weight: bytes[i]! }))
  return beyond(weighed, BYTES_BESIDE_WAKES)
}

/** Those of the orgs that do not fit into so much beside what others have less of. */
export function beyond<T extends { orgId: OrgId; weight: number }>(weighed: readonly T[], most: number): T[] {
  const ofOrgs = [...Map.groupBy(weighed, ({ orgId }) => orgId).values()]
  const sumOf = (own: T[]) => own.reduce((sum, { weight }) => sum + weight, 0)
  let left = most
  return ofOrgs
    .map((own) => ({ own, sum: sumOf(own) }))
    .toSorted((a, b) => a.sum - b.sum)
    .flatMap(({ own, sum }) => ((left -= sum) < 0 ? own : []))
}
