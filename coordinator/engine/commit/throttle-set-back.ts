import type { Log } from '@windlass/shared/log.ts'
import type { Db, Tx } from '../../db/client.ts'
import { readHolds, ruleOfKey, turnsAtMost } from '../rules/holds.ts'
import * as store from '../store/throttles-set-back.ts'
import { clock } from '../store/throttles.ts'
import { enterLater, insert, type NewTimer } from '../store/timers.ts'
import { inPages, inPasses, type Pass } from './clock-set-back.ts'
import type { Timers } from './clock.ts'

/**
 * Puts turns of throttled runs that lie further in the future than their throttle explains where it would have them:
 * the clock of the database was ahead when they were given. The limit holds, and the order of the runs.
 */
export async function putThrottlesBack(
  deps: { db: Db; log: Log; timers: Timers },
  signal?: AbortSignal,
): Promise<number> {
  const changed = await inPasses(async () => {
    const pass = await inPages(deps.db, store.keysThatDelay, putKeysBack)
    if (pass.moved > 0) deps.timers.expect(0)
    return pass
  }, signal)
  if (changed > 0) deps.log.warn('throttles.setBack', { runs: changed })
  return changed
}

/**
 * Under the locks of these throttles, so that nobody takes a turn meanwhile. Runs come before them in the order of
 * locks: those that are locked by others are passed over.
 */
async function putKeysBack(tx: Tx, keys: readonly string[]): Promise<Pass> {
  const throttles = await store.lock(tx, keys)
  const { now, begun } = await clock(tx)
  const waiting = Map.groupBy(await store.waiting(tx), ({ holds }) => readHolds(holds).throttle?.key)
  const starts = Map.groupBy(await store.startsOf(tx, keys), ({ key }) => key)
  const plans = throttles.flatMap(({ key, last }) => {
    const rule = ruleOfKey(key)
    return rule ? [planOf({ key, last, rule, now }, waiting.get(key) ?? [], starts.get(key) ?? [])] : []
  })
  const wanted = plans.flatMap(({ moves }) => moves)
  const found = await store.lockFree(
    tx,
    wanted.map(({ runId }) => runId),
  )
  const queued = new Set(found.filter(({ status }) => status === 'queued').map(({ id }) => id))
  const moves = wanted.filter(({ runId }) => queued.has(runId)).map((one) => ({ ...one, inMs: one.at - begun }))
  if (moves.length > 0)
    await enterLater(
      tx,
      moves.map(({ runId, inMs }) => ({ id: runId, inMs })),
    )
  const timers = moves.map(({ runId, n, holds, inMs }): NewTimer => ({
    runId,
    kind: 'enqueue',
    n,
    due: { inMs },
    holds,
  }))
  await insert(tx, timers)
  await store.move(
    tx,
    plans.flatMap((plan) => plan.starts),
    plans.map(({ key, clearAt }) => ({ key, clearAt })),
  )
  return { moved: moves.length, left: wanted.length - found.length }
}

interface Throttled {
  key: string
  last: number
  rule: { limit: number; perMs: number }
  now: number
}

/** The newest starts are those of the runs that wait; older ones have been, whatever the clock showed then. */
function planOf(
  { key, last, rule, now }: Throttled,
  waiting: readonly store.Waiting[],
  starts: readonly { key: string; n: number; at: number }[],
) {
  const turns = turnsAtMost(
    waiting.map(({ at }) => at),
    rule,
    now,
  )
  const moves = waiting.map((one, i) => ({ ...one, at: turns[i]!, was: one.at })).filter(({ at, was }) => at < was)
  const put = starts.map(({ n, at }) => ({ key, n, at: turns[turns.length - 1 - (last - n)] ?? Math.min(at, now) }))
  const newest = Math.max(now, ...put.slice(-1).map(({ at }) => at))
  return { key, moves, starts: put, clearAt: newest + rule.perMs }
}
