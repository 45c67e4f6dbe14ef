import type { Tx } from '../../db/client.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import type { Moving } from '../rules/run.ts'
import { mayTimeOutInQueue } from '../rules/transitions.ts'
import * as store from '../store/timers.ts'

/** A run that comes into the queue, or that will so much later. */
export interface Entry {
  run: Moving
  inMs: number
}

/**
 * Runs of which nobody let them into the queue when their time had come, as no coordinator was there, it stood still,
 * or the locks of their limits were held: how long they may wait there counts from their entry. One that was given out
 * before has been in the queue, and its time goes on. Answers those that have all their time before them now.
 */
export async function renewQueueTimeouts(
  { tx, versionTerms }: { tx: Tx; versionTerms: TermsReader },
  entries: readonly Entry[],
): Promise<Set<Moving>> {
  const first = entries.filter(({ run }) => isNew(run))
  const ids = first.map(({ run }) => run.versionId)
  await versionTerms.warm(ids, tx)
  const timed = []
  for (const { run, inMs } of first) {
    const { queueTimeoutMs } = (await versionTerms.get(run.versionId, tx)).descriptor
    if (queueTimeoutMs !== null) timed.push({ run, waitsMs: inMs, inMs: inMs + queueTimeoutMs })
  }
  if (timed.length === 0) return new Set()
  const late = new Set(
    await store.enteringLate(
      tx,
      timed.map(({ run }) => run.id),
    ),
  )
  const renewed = timed.filter(({ run, waitsMs }) => waitsMs > 0 || late.has(run.id))
  await store.insert(
    tx,
    renewed.map(({ run, inMs }) => ({ runId: run.id, kind: 'queue-timeout' as const, n: 0, due: { inMs } })),
  )
  return new Set(renewed.map(({ run }) => run))
}

/**
 * Those of these runs, whose time in the queue is over, that have yet to enter it: after a stall what ends runs and
 * what lets them into the queue is done side by side.
 */
export async function yetToEnter(tx: Tx, runs: readonly Moving[]): Promise<Set<Moving>> {
  const fresh = runs.filter(isNew)
  if (fresh.length === 0) return new Set()
  const ids = fresh.map(({ id }) => id)
  const outside = new Set(await store.yetToEnter(tx, ids))
  return new Set(fresh.filter(({ id }) => outside.has(id)))
}

const isNew = (run: Moving) => run.epoch === 0 && run.status === 'queued' && mayTimeOutInQueue(run)
