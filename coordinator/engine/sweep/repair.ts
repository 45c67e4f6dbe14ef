import type { RunId } from '@windlass/shared/ids.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import { rebalance } from '../commit/admit.ts'
import type { Tx } from '../../db/client.ts'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import { warmTerms } from '../commit/versions.ts'
import { unanswered } from '../commit/fire.ts'
import { type MoveDeps, moveRuns } from '../commit/move-runs.ts'
import { complete, completionOf, enterNow, requeue } from '../rules/transitions.ts'
import { lose, loseAtRest } from '../rules/outcome.ts'
import { workflowOf } from '../rules/groups.ts'
import type { Moving } from '../rules/run.ts'
import { lock } from '../store/concurrency.ts'
import { type Finding, orphansAmong } from '../store/orphans.ts'
import * as store from '../store/strays.ts'

export type RepairDeps = { versionTerms: TermsReader } & MoveDeps

/** Puts right what is still wrong with these runs when they are locked, and answers what that was. */
export async function repair(deps: RepairDeps, ids: string[]): Promise<Finding[]> {
  // Looked up now: in the transaction it would take a second connection.
  await warmTerms(deps, ids)
  const findings = await moveRuns(deps, { ids }, async (tx, runs) => {
    const findings = await store.leftAlone(tx, await orphansAmong(tx, ids))
    const touched = new Set<Moving>()
    for (const one of findings) {
      const run = runs.get(one.runId)
      if (!run) continue
      if (await moveOn(tx, deps, run, one)) touched.add(run)
    }
    for (const [run, completion] of await lostCompletions(tx, findings, runs)) {
      complete(run, completion)
      touched.add(run)
    }
    await store.dropStrays(tx, findings)
    // What is restored may have been due long ago.
    if (findings.some(({ kind }) => kind === 'timer_missing')) deps.floors.timers.lower(-Infinity)
    await restore(tx, findings)
    return { moved: touched, answer: findings }
  })
  await repairGroups(deps, findings)
  // Whatever has entered a queue or become due by way of a repair.
  deps.dispatchers.pokeAll()
  deps.timers.expect(0)
  return findings
}

/** A transaction of its own: whoever moves runs takes the locks of all their groups at once. */
async function repairGroups(deps: MoveDeps, findings: readonly Finding[]): Promise<void> {
  const some = (...kinds: Finding['kind'][]) =>
    findings.filter((one) => kinds.includes(one.kind)).map((one) => one.runId)
  const strays = some('stray_slot', 'stray_waiter')
  const [twice, waiters] = [some('queued_twice'), some('waiter_with_room')]
  const ids = [...strays, ...twice, ...waiters]
  if (ids.length === 0) return
  await moveRuns(deps, { ids, ending: [] }, async (tx) => {
    const groups = await store.groupsOf(tx, ids)
    if (twice.length > 0) {
      await lockGroups(tx, groups)
      await store.dropSurplus(tx, twice)
    }
    const among = (ids: RunId[]) => groups.filter((one) => ids.includes(one.id))
    await rebalance(tx, { leaving: among(strays), entering: among(waiters) })
    return { moved: [], answer: undefined }
  })
}

/** `rebalance` asks for some of them again, which it has then. */
async function lockGroups(tx: Tx, groups: readonly { concurrencyGroup: string }[]): Promise<void> {
  const workflows = groups.map(({ concurrencyGroup }) => workflowOf(concurrencyGroup))
  await lock(tx, [...new Set(workflows)].sort())
}

type MovingOn = { versionTerms: TermsReader; databaseClock: Pick<DatabaseClock, 'now'> }

/** True: the run was moved. */
async function moveOn(tx: Tx, deps: MovingOn, run: Moving, { kind }: Finding): Promise<boolean> {
  if (kind === 'queued_nowhere' || kind === 'wake_missing') enterNow(run)
  else if (kind === 'process_missing') await loseProcess(tx, deps, run)
  else if (kind === 'waits_for_nothing')
    loseAtRest(run, deps.databaseClock.now(), await deps.versionTerms.get(run.versionId, tx))
  else return false
  return true
}

async function loseProcess(tx: Tx, deps: MovingOn, run: Moving): Promise<void> {
  const why = { what: 'unknown', reason: 'its process was on no runner' } as const
  const now = deps.databaseClock.now()
  // Nothing of it has been executed.
  if (run.status === 'pending') return requeue(run, now, why)
  lose(run, now, await deps.versionTerms.get(run.versionId, tx), why)
}

/** What was written without the moves of a run. */
async function restore(tx: Tx, findings: readonly Finding[]): Promise<void> {
  const some = (kind: Finding['kind']) => findings.filter((one) => one.kind === kind)
  if (some('timer_missing').length > 0) await store.setTimers(tx, some('timer_missing'))
}

/** The ends of waits that the runs have not heard of. */
async function lostCompletions(
  tx: Tx,
  findings: readonly Finding[],
  runs: Map<string, Moving>,
): Promise<[Moving, Completion][]> {
  const some = (kind: Finding['kind']) => findings.filter((one) => one.kind === kind)
  const lost: { runId: string; completion: Completion }[] = some('child_missing').map(({ runId, n }) => ({
    runId,
    completion: refused(n, 'The run that was called does not exist any more.'),
  }))
  const ended = some('child_ended')
  if (ended.length > 0)
    for (const { runId, n, child } of await store.endedChildren(tx, ended))
      lost.push({ runId, completion: completionOf(child, child.status, n) })
  const unasked = some('question_missing')
  if (unasked.length > 0) {
    const known = new Map((await store.closedQuestions(tx, unasked)).map((one) => [`${one.runId}/${one.n}`, one]))
    for (const { runId, n } of unasked) lost.push({ runId, completion: answerOf(n, known.get(`${runId}/${n}`)) })
  }
  return lost.flatMap(({ runId, completion }) => {
    const run = runs.get(runId)
    return run ? [[run, completion] as [Moving, Completion]] : []
  })
}

function answerOf(n: number, question: store.ClosedQuestion | undefined): Completion {
  if (question?.status === 'answered') return { n, state: 'done', result: question.answer ?? 'null' }
  if (question?.status === 'timed_out') return unanswered(question)
  return refused(n, 'The question is not open any more, and nobody has answered it.')
}

function refused(n: number, message: string): Completion {
  return { n, state: 'failed', result: JSON.stringify({ name: 'CallRefusedError', code: 'CALL_REFUSED', message }) }
}
