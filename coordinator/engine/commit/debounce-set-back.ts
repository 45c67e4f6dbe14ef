import type { Log } from '@windlass/shared/log.ts'
import { CORRECTION_MS } from '../../db/clock-difference.ts'
import type { Db, Tx } from '../../db/client.ts'
import * as store from '../store/debounces-set-back.ts'
import { lockFree } from '../store/throttles-set-back.ts'
import { enterLater, insert } from '../store/timers.ts'
import { inPages, inPasses, type Pass } from './clock-set-back.ts'
import type { Timers } from './clock.ts'

/**
 * Runs that wait for further calls, by a clock of the database that was ahead: none waits longer from now on than its
 * descriptor says, for the next call and altogether.
 */
export async function putDebouncesBack(
  deps: { db: Db; log: Log; timers: Timers },
  signal?: AbortSignal,
): Promise<number> {
  const changed = await inPasses(async () => {
    const pass = await inPages(deps.db, store.keysThatWait, putKeysBack)
    if (pass.moved > 0) deps.timers.expect(0)
    return pass
  }, signal)
  if (changed > 0) deps.log.warn('debounces.setBack', { runs: changed })
  return changed
}

/** The locks of keys come before those of runs, as for calls. What others have locked is passed over. */
async function putKeysBack(tx: Tx, keys: readonly string[]): Promise<Pass> {
  const waiting = await store.lockFreeKeys(tx, keys)
  const ahead = waiting.filter(
    ({ inMs, waitMs, latestInMs, maxWaitMs }) =>
      inMs > waitMs + CORRECTION_MS || latestInMs > maxWaitMs + CORRECTION_MS,
  )
  const found = await lockFree(
    tx,
    ahead.map(({ runId }) => runId),
  )
  const queued = new Set(found.filter(({ status }) => status === 'queued').map(({ id }) => id))
  const moves = ahead
    .filter(({ runId }) => queued.has(runId))
    .map((one) => {
      const latestInMs = Math.min(one.latestInMs, one.maxWaitMs)
      return { ...one, latestInMs, inMs: Math.min(one.inMs, one.waitMs, latestInMs) }
    })
  if (moves.length > 0) {
    await enterLater(
      tx,
      moves.map(({ runId, inMs }) => ({ id: runId, inMs })),
    )
    await insert(
      tx,
      moves.map(({ runId, n, holds, inMs }) => ({ runId, kind: 'enqueue', n, due: { inMs }, holds })),
    )
    await store.moveLatest(
      tx,
      moves.map(({ key, latestInMs }) => ({ key, inMs: latestInMs })),
    )
  }
  return { moved: moves.length, left: ahead.length - found.length }
}
