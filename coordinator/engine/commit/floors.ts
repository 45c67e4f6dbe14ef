import type { PoolId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../../db/client.ts'
import type { DatabaseClock } from '../../db/database-clock.ts'
import * as store from '../store/floors.ts'

/**
 * Where looks for timers and runs begin. While somebody reads the database in one snapshot, as pg_dump does for hours,
 * PostgreSQL cannot take away the index entries of what came and went since: each look that begins at the head passes
 * over all of them. So when looks are slow, it is looked once from the very beginning, beside the others; these begin
 * where that found the first. It is looked so again every ten seconds, for what nobody foresaw.
 */
export interface Floors {
  timers: TimerFloor
  queues: QueueFloors
  /** Resolves when no look is under way. */
  idle(): Promise<void>
}

export interface TimerFloor {
  /** No timer is due before `floor`, in milliseconds since the epoch. */
  begin<T>(look: (floor: number) => Promise<T>): Promise<T>
  /** A timer is being set that may be due before: an agent that was away tells late of a sleep. */
  lower(at: number): void
}

interface QueueFloors {
  /** No run in the queue of this pool has a lower position than `floor`. */
  begin<T>(poolId: PoolId, claim: (floor: number) => Promise<T>): Promise<T>
}

/** A look that is not slow passes over little. */
const SLOW_MS = 50
/** When a look from the very beginning takes less, all others may begin there as well. */
const CHEAP_MS = 10
/** Between two looks from the very beginning; after one that took long it is more. */
const REST_MS = 10_000
const REST_FACTOR = 10

/** Tells how long it has taken, also when it has failed. */
async function timed<T>(act: Promise<T>, took: (ms: number) => void): Promise<T> {
  const since = performance.now()
  try {
    return await act
  } finally {
    took(performance.now() - since)
  }
}

interface Look {
  /** Looks, unless one is under way or has been shortly before. */
  request(): void
  idle(): Promise<void>
}

function createLook(log: Log, look: () => Promise<void>): Look {
  let restUntil = -Infinity
  let underWay: Promise<void> | undefined

  async function attempt(): Promise<void> {
    const since = performance.now()
    await look().catch((error: unknown) => log.warn('floors.failed', { error }))
    const now = performance.now()
    restUntil = now + Math.max(REST_MS, (now - since) * REST_FACTOR)
    underWay = undefined
  }

  return {
    request: () => void (performance.now() >= restUntil && (underWay ??= attempt())),
    idle: async () => underWay,
  }
}

type FloorsDeps = { db: Db; log: Log; databaseClock: Pick<DatabaseClock, 'now'> }

export function openFloors({ db, log, databaseClock }: FloorsDeps): Floors {
  const stopped = new AbortController()
  const timers = createTimerFloor({ log, databaseClock }, () => store.firstDue(db))
  const queues = createQueueFloors(log, db, stopped.signal)
  return {
    timers,
    queues,
    async idle() {
      stopped.abort()
      await Promise.all([timers.idle(), queues.idle()])
    },
  }
}

/** Hardly a transaction that sets a timer takes longer; what it sets is found with the next look from the beginning. */
const SETTING_MS = 60_000
/** What is due later is above each floor that a look under way may find: they lie further back. */
const PAST_MS = 10_000

/** The earliest timer that was set lately: a look may have begun before the commit. */
function createEarliest(): (at?: number) => number {
  let [latest, before] = [Infinity, Infinity]
  let since = performance.now()
  return (at = Infinity) => {
    const ms = performance.now() - since
    if (ms > SETTING_MS) {
      before = ms > 2 * SETTING_MS ? Infinity : latest
      latest = Infinity
      since = performance.now()
    }
    latest = Math.min(latest, at)
    return Math.min(latest, before)
  }
}

export function createTimerFloor(
  { log, databaseClock }: Omit<FloorsDeps, 'db'>,
  firstDue: () => Promise<number>,
): TimerFloor & Pick<Look, 'idle'> {
  let floor = -Infinity
  const earliest = createEarliest()

  const look = createLook(log, async () => {
    const since = performance.now()
    const first = await firstDue()
    floor = performance.now() - since < CHEAP_MS ? -Infinity : Math.min(first, earliest())
  })

  return {
    begin: (act) => timed(act(floor), (ms) => void ((ms >= SLOW_MS || floor > -Infinity) && look.request())),
    lower: (at) => void (at < databaseClock.now() - PAST_MS && (floor = Math.min(floor, earliest(at)))),
    idle: () => look.idle(),
  }
}

/** Whoever takes a position writes its row at once. */
const WRITING_MS = 1000
/** Transactions that are under way end soon, or are not waited for. */
const ENDING = { tries: 20, everyMs: 500 }

function createQueueFloors(log: Log, db: Db, signal: AbortSignal): QueueFloors & Pick<Look, 'idle'> {
  const floors = new Map<PoolId, number>()
  const slow = new Set<PoolId>()
  const of = (poolId: PoolId) => floors.get(poolId) ?? 0

  async function raise(poolId: PoolId, settled: number | undefined): Promise<void> {
    const most = settled ?? of(poolId) - 1
    if (most < 0) return
    const since = performance.now()
    const first = await store.firstPosition(db, poolId, most)
    if (performance.now() - since < CHEAP_MS) floors.delete(poolId)
    else floors.set(poolId, first ?? most + 1)
  }

  const look = createLook(log, async () => {
    const most = await settledPosition(db, signal)
    const pools = [...slow]
    slow.clear()
    for (const poolId of pools) await raise(poolId, most)
  })

  function took(poolId: PoolId, ms: number): void {
    if (ms < SLOW_MS && !floors.has(poolId)) return
    slow.add(poolId)
    look.request()
  }

  return {
    begin: (poolId, claim) => timed(claim(of(poolId)), (ms) => took(poolId, ms)),
    idle: () => look.idle(),
  }
}

/**
 * A position up to which no run can appear in the queue any more: positions are given in order, but a transaction that
 * was given one may commit later than others behind it. So those have ended that were under way when it was given.
 */
export async function settledPosition(db: Db, signal: AbortSignal): Promise<number | undefined> {
  const position = await store.lastPosition(db)
  await pause(WRITING_MS, signal)
  const begun = await store.transactionsBegun(db)
  for (let tries = 0; tries < ENDING.tries && !signal.aborted; tries++) {
    if (await store.haveEnded(db, begun)) return position
    await pause(ENDING.everyMs, signal)
  }
  return undefined
}
