import type { InputId, RunId } from '@windlass/shared/ids.ts'
import type { FinalStatus, RunError } from '@windlass/shared/model/run.ts'
import type { Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import type { OrphanKind } from '../rules/orphan.ts'
import { leaveQueue } from './runs.ts'
import { type Finding, strayTimers } from './orphans.ts'

const of = (findings: readonly Finding[], kind: OrphanKind) => findings.filter((one) => one.kind === kind)
const idsOf = (findings: readonly Finding[]) => [...new Set(findings.map((one) => one.runId))].sort()

/**
 * Without the queue rows that somebody is taking away at this moment: a claim locks such a row before its run, and when the run has
 * been cancelled in between, the row goes with the claim.
 */
export async function leftAlone(tx: Tx, findings: readonly Finding[]): Promise<Finding[]> {
  const queued = idsOf(of(findings, 'stray_queue_row'))
  if (queued.length === 0) return [...findings]
  const rows = await tx<{ runId: string }[]>`
    select run_id from run_queue where run_id = any(${queued}) order by run_id for update skip locked`
  const there = new Set(rows.map((row) => row.runId))
  return findings.filter((one) => one.kind !== 'stray_queue_row' || there.has(one.runId))
}

/** Takes stray rows away, all under the locks of their runs. */
export async function dropStrays(tx: Tx, findings: readonly Finding[]): Promise<void> {
  const some = (kind: OrphanKind) => idsOf(of(findings, kind))
  await leaveQueue(tx, some('stray_queue_row'))
  const placed = some('stray_placement')
  if (placed.length > 0) await tx`delete from placements where run_id = any(${placed})`
  const timed = some('stray_timer')
  if (timed.length > 0)
    await tx`
      delete from timers t
      using (${strayTimers(tx, timed)}) stray
      where t.run_id = stray.run_id and t.kind = stray.kind and t.n = stray.n`
  const questions = of(findings, 'stray_question')
  if (questions.length === 0) return
  await tx`
    update inputs i
    set status = 'closed', closed_at = now()
    from ${unnest(tx, 'm', questions, { runId: 'text', n: 'int' })}
    where i.run_id = m.run_id and i.n = m.n and i.status = 'open'`
}

/** The groups in which these runs have a place or wait for one. */
export function groupsOf(tx: Tx, ids: readonly string[]): Promise<{ id: RunId; concurrencyGroup: string }[]> {
  return tx<{ id: RunId; concurrencyGroup: string }[]>`
    select run_id as id, group_key as concurrency_group from concurrency_slots where run_id = any(${[...ids]})
    union
    select run_id as id, group_key as concurrency_group from concurrency_waiters where run_id = any(${[...ids]})`
}

/** What is in the queue need not enter it; what waits for a time need not wait for a place as well, nor hold one. */
export async function dropSurplus(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx`
    delete from timers t
    where run_id = any(${[...ids]}) and kind = 'enqueue' and exists (select from run_queue q where q.run_id = t.run_id)`
  await tx`
    delete from concurrency_waiters w
    where run_id = any(${[...ids]})
      and (exists (select from run_queue q where q.run_id = w.run_id)
           or exists (select from timers t where t.run_id = w.run_id and t.kind = 'enqueue'))`
  await tx`
    delete from concurrency_slots s
    where run_id = any(${[...ids]}) and not exists (select from run_queue q where q.run_id = s.run_id)`
}

/** Sets lost timers again, for the moments that the journal and the questions know. */
export function setTimers(tx: Tx, findings: readonly Finding[]): PromiseLike<unknown> {
  return tx`
    insert into timers (run_id, org_id, kind, n, due_at)
    select j.run_id, coalesce(r.org_id, ''), j.kind, j.n, coalesce(j.due_at, i.due_at, now())
    from ${unnest(tx, 'm', findings, { runId: 'text', n: 'int' })}
    join journal j on j.run_id = m.run_id and j.n = m.n
    left join inputs i on i.run_id = m.run_id and i.n = m.n
    left join runs r on r.id = m.run_id
    on conflict (run_id, kind, n) do nothing`
}

/** What became of a question whose call is still open. */
export interface ClosedQuestion {
  runId: RunId
  n: number
  id: InputId
  status: 'answered' | 'timed_out' | 'closed'
  prompt: string
  answer: string | null
  onTimeout: string | null
}

export function closedQuestions(tx: Tx, findings: readonly Finding[]): PromiseLike<ClosedQuestion[]> {
  return tx<ClosedQuestion[]>`
    select i.run_id, i.n, i.id, i.status, i.prompt, i.answer, i.on_timeout
    from ${unnest(tx, 'm', findings, { runId: 'text', n: 'int' })}
    join inputs i on i.run_id = m.run_id and i.n = m.n`
}

/** How a child ended whose parent has not heard of it. */
export interface EndedChild {
  runId: RunId
  n: number
  child: { id: RunId; status: FinalStatus; output: string | null; error: RunError | null }
}

export async function endedChildren(tx: Tx, findings: readonly Finding[]): Promise<EndedChild[]> {
  const rows = await tx<
    { runId: RunId; n: number; id: RunId; status: FinalStatus; output: string | null; error: string | null }[]
  >`
    select j.run_id, j.n, c.id, c.status, c.output, c.error
    from ${unnest(tx, 'm', findings, { runId: 'text', n: 'int' })}
    join journal j on j.run_id = m.run_id and j.n = m.n
    join runs c on c.id = j.child_run_id`
  return rows.map(({ runId, n, error, ...child }) => ({
    runId,
    n,
    child: { ...child, error: error === null ? null : (JSON.parse(error) as RunError) },
  }))
}
