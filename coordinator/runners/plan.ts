import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { DrainPlan } from '@windlass/shared/model/runner.ts'
import type { Db } from '../db/client.ts'
import type { Caller } from '../actor.ts'
import { lacking } from '../matching/capable.ts'
import * as store from './store-plan.ts'

/** More than any machine has of slots. */
const MOST_SHOWN = 2000

type HeldRun = DrainPlan['live'][number]

/** What a drain would meet, or what it still waits for. Changes nothing. */
export async function planDrain(deps: { db: Db }, caller: Caller, runner: RunnerId): Promise<DrainPlan> {
  const around = await store.around(deps.db, caller.orgId, runner)
  if (!around) throw new Fault('NOT_FOUND', { runner })
  const [rows, others] = await Promise.all([
    store.heldOn(deps.db, runner, MOST_SHOWN),
    store.others(deps.db, around.poolId, runner),
  ])
  const settings = PoolSettings.parse(around.poolSettings)
  const able = others.filter((one) => lacking(one, settings) === undefined)
  const held = rows.map(present)
  const { epoch, queuedRuns } = around
  return { runner, epoch, live: held, othersTakeWork: able.length, queuedRuns, warnings: warnings(around, able, held) }
}

function present(row: store.HeldRow): HeldRun {
  const outcome = outcomeOf(row)
  return {
    run: row.runId,
    workflow: row.workflow,
    status: row.status,
    since: (row.acceptedAt ?? row.offeredAt).getTime(),
    outcome,
    latestEndAt: outcome === 'finishes' ? latestEnd(row) : null,
  }
}

function outcomeOf({ acceptedAt, place }: store.HeldRow): HeldRun['outcome'] {
  if (acceptedAt === null) return 'returns-to-queue'
  return place === 'parked' ? 'moves' : 'finishes'
}

/**
 * One that has never waited began when it was accepted; of any other it is known only what it had computed before. A
 * time that has passed is held up: its agent is to be heard first.
 */
function latestEnd({ acceptedAt, now, activeMs, timeoutMs, graceMs, wallAt }: store.HeldRow): number {
  const from = activeMs === 0 && acceptedAt ? acceptedAt : now
  const ownTime = from.getTime() + Math.max(0, timeoutMs - activeMs)
  const endOfTime = Math.min(ownTime, wallAt?.getTime() ?? Infinity)
  return Math.round(Math.max(endOfTime, now.getTime()) + graceMs)
}

function warnings(around: store.Surroundings, others: readonly store.Other[], held: readonly HeldRun[]): string[] {
  const has = (outcome: HeldRun['outcome']) => held.filter((run) => run.outcome === outcome).length
  const leaving = has('moves') + has('returns-to-queue')
  const lastEnd = Math.max(0, ...held.map((run) => run.latestEndAt ?? 0))
  const isAlike = ({ labels }: store.Other) => around.labels.every((label) => labels.includes(label))
  const { queuedRuns, deadlineAt, state } = around
  const all = [
    state === 'revoked' && 'The runner was revoked: what it has goes to others, and there is nothing to drain.',
    !around.online &&
      held.length > 0 &&
      'The runner is not heard of: what it has goes to others when its lease runs out, drained or not.',
    others.length === 0 &&
      leaving + queuedRuns > 0 &&
      'No other runner of the pool takes work: what moves, goes back or is queued waits until one does.',
    others.length > 0 &&
      !others.some(isAlike) &&
      leaving + queuedRuns > 0 &&
      'No other runner that takes work carries all labels of this one: runs that need them wait.',
    deadlineAt !== null &&
      lastEnd > deadlineAt.getTime() &&
      'What executes may take longer than until the deadline of the drain.',
  ]
  return all.filter((warning) => warning !== false)
}
