import type { RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../../db/client.ts'
import * as runStore from '../store/runs.ts'
import type { PassedOver, Upcoming } from '../store/timers.ts'
import type { Timers } from './clock.ts'
import type { LongEnds } from './long-ends.ts'
import { answerBytes } from './questions.ts'
import { createTimerLine, type TimerLine } from './timer-line.ts'

/** 10,000 runs that wake in the same moment are 50 transactions. */
export const AT_ONCE = 200

/** What nobody else waits for: it may have much to write. */
export interface TimersBehind {
  /** What ends runs. */
  ends: TimerLine
  /** Questions whose time is up, of orgs with large answers. */
  answers: TimerLine
}

/** Entries of the runs that one transaction ends: some 20 ms. What has more is ended alone, see `LongEnds`. */
const ENTRIES_AT_ONCE = 500
/** Of answers, which have a MiB at most each: they are read, written into the journals and told to agents in one go. */
const BYTES_AT_ONCE = 2 * 1024 * 1024
/** Of answers in a pass, for which the sleeps in it wait: some 30 ms. */
const BYTES_BESIDE_WAKES = 512 * 1024

export function openTimersBehind({ db, log, timers }: { db: Db; log: Log; timers: Timers }): TimersBehind {
  const shared = { log, mostTimers: AT_ONCE, onFree: () => timers.expect(0) }
  const lockedWith = (ids: RunId[]) => runStore.parentsOf(db, ids)
  return {
    ends: createTimerLine({ ...shared, most: ENTRIES_AT_ONCE, lockedWith }),
    answers: createTimerLine({ ...shared, most: BYTES_AT_ONCE }),
  }
}

export type BehindDeps = { db: Db; longEnds: LongEnds; timersBehind: TimersBehind }

/** What the look for what is due leaves out. */
export function passedOver({ longEnds, timersBehind: { ends, answers } }: BehindDeps): PassedOver {
  return {
    endsOf: [...ends.orgs(), ...longEnds.orgs(AT_ONCE)],
    endsOfRuns: longEnds.ids(),
    questionsOf: answers.orgs(),
    runs: [...longEnds.held(), ...ends.held(), ...answers.held()],
  }
}

export const isNothing = ({ endsOf, endsOfRuns, questionsOf, runs }: PassedOver) =>
  [endsOf, endsOfRuns, questionsOf, runs].every((list) => list.length === 0)

type Act = (due: Upcoming[]) => Promise<void>

export const endsRuns = ({ kind }: Upcoming) => kind === 'queue-timeout' || kind === 'wall-timeout'

/**
 * What this pass does. What ends runs has its turn behind it, and so have the questions of those orgs whose answers are
 * too large for it; an org that has only small ones does not wait for these.
 */
export async function withoutBehind(deps: BehindDeps, due: Upcoming[], act: Act): Promise<Upcoming[]> {
  const { runs } = passedOver(deps)
  const free = due.filter(({ runId }) => !runs.includes(runId))
  await endBehind(deps, free.filter(endsRuns), act)
  const questions = free.filter(({ kind }) => kind === 'input')
  const large = await largeAnswers(deps.db, questions)
  const { ends, answers } = deps.timersBehind
  answers.add(large, (timers) => act(withoutHeld(timers, [deps.longEnds, ends])))
  const behind = new Set(large.map(({ timer }) => timer))
  return free.filter((timer) => !endsRuns(timer) && !behind.has(timer))
}

/** Those whose runs others hold by now are found again: in this transaction all would wait for them. */
function withoutHeld(due: Upcoming[], holders: readonly { held(): RunId[] }[]): Upcoming[] {
  const held = new Set(holders.flatMap((holder) => holder.held()))
  return due.filter(({ runId }) => !held.has(runId))
}

/** Each org in turn. Those with long journals one at a time, so that the others of the org do not wait for them. */
async function endBehind(deps: BehindDeps, due: Upcoming[], act: Act): Promise<void> {
  if (due.length === 0) return
  const runIds = due.map(({ runId }) => runId)
  const entries = await runStore.entriesOf(deps.db, runIds)
  const weighed = due.map((timer) => ({ timer, weight: entries.get(timer.runId) ?? 0 }))
  const { ends, answers } = deps.timersBehind
  ends.add(weighed.filter(isLight), (timers) => act(withoutHeld(timers, [deps.longEnds, answers])))
  for (const one of weighed) if (!isLight(one)) endLong(deps.longEnds, one.timer, act)
}

const isLight = ({ weight }: { weight: number }) => weight <= ENTRIES_AT_ONCE

/** Not found again, while it waits for its turn. */
function endLong(longEnds: LongEnds, timer: Upcoming, act: Act): void {
  const { runId, orgId } = timer
  if (longEnds.has(runId)) return
  longEnds.add({ orgId, runIds: [runId], act: async (ids) => (ids.length > 0 ? act([timer]) : undefined) })
}

/** The questions of those orgs whose answers do not fit into a pass beside the smaller ones of others. */
async function largeAnswers(db: Db, questions: Upcoming[]): Promise<{ timer: Upcoming; weight: number }[]> {
  if (questions.length === 0) return []
  const bytes = await answerBytes(db, questions)
  const weighed = questions.map((timer, i) => ({ timer, weight: bytes[i]! }))
  const ofOrgs = [...Map.groupBy(weighed, ({ timer }) => timer.orgId).values()]
  const sumOf = (own: typeof weighed) => own.reduce((sum, { weight }) => sum + weight, 0)
  let left = BYTES_BESIDE_WAKES
  return ofOrgs
    .map((own) => ({ own, sum: sumOf(own) }))
    .toSorted((a, b) => a.sum - b.sum)
    .flatMap(({ own, sum }) => ((left -= sum) < 0 ? own : []))
}
