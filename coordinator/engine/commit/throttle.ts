import type { RunId } from '@windlass/shared/ids.ts'
import type { Tx } from '../../db/client.ts'
import { type Throttle, turnOf } from '../rules/holds.ts'
import { idsThere, type NewRun } from '../store/new-runs.ts'
import * as store from '../store/throttles.ts'

/** A run that may enter the queue but for its throttle. */
interface Arrival {
  id: RunId
  throttle: Throttle
}

/**
 * Gives runs their turns, in this order. Answers in how many milliseconds of this transaction's time each may enter the
 * queue; 0: now. The locks of the throttles come after those of runs and before those of concurrency groups.
 */
export async function takeTurns(tx: Tx, arrivals: readonly Arrival[]): Promise<Map<RunId, number>> {
  if (arrivals.length === 0) return new Map()
  const byKey = Map.groupBy(arrivals, ({ throttle }) => throttle.key)
  const counts = [...byKey].map(([key, { length }]) => ({ key, count: length }))
  const numbered = (await store.reserve(tx, counts)).flatMap(({ key, last }) => numberOf(byKey.get(key)!, key, last))
  const [known, { now, begun }] = await Promise.all([store.starts(tx, numbered.flatMap(lookedBackTo)), store.clock(tx)])
  const starts = Map.groupBy(known, ({ key }) => key)
  const startsOf = new Map(counts.map(({ key }) => [key, new Map((starts.get(key) ?? []).map(({ n, at }) => [n, at]))]))
  const given = numbered.map((one) => ({ ...one, at: turnOf(startsOf.get(one.key)!, one.n, one.throttle, now) }))
  const lasts = [...Map.groupBy(given, ({ key }) => key).values()].map((some) => storedOf(some.at(-1)!))
  const upTo = new Map(lasts.map((last) => [last.key, last.upTo]))
  await store.keep(
    tx,
    given.filter(({ key, n }) => n > upTo.get(key)!),
    lasts,
  )
  // Not rounded, or two transactions could let runs of the same moment overtake each other.
  return new Map(given.map(({ id, at }) => [id, at <= now ? 0 : at - begun]))
}

interface Numbered extends Arrival {
  key: string
  n: number
}

function numberOf(arrivals: readonly Arrival[], key: string, last: number): Numbered[] {
  return arrivals.map((arrival, i) => ({ ...arrival, key, n: last - arrivals.length + 1 + i }))
}

const lookedBackTo = ({ key, n, throttle }: Numbered) => [
  { key, n: n - 1 },
  { key, n: n - throttle.limit },
]

/** What the next one looks back to is kept: the start `limit` before it, and all behind that. */
function storedOf({ key, n, at, throttle }: Numbered & { at: number }) {
  return { key, upTo: n - throttle.limit, clearAt: at + throttle.perMs }
}

/**
 * Sets the waits of throttled runs that are about to be created. Those with a delay of their own take their turn at its
 * end. Runs whose creation was not heard of, and which are there, have had theirs.
 */
export async function throttleNew(tx: Tx, runs: readonly NewRun[]): Promise<void> {
  const throttled = runs.filter((run) => run.throttle !== null && run.delayMs === 0)
  if (throttled.length === 0) return
  const there = await idsThere(
    tx,
    throttled.map((run) => run.id),
  )
  const arrivals = throttled.filter((run) => !there.has(run.id))
  const waits = await takeTurns(
    tx,
    arrivals.map(({ id, throttle }) => ({ id, throttle: throttle! })),
  )
  // Ticks of a schedule share what they were prepared with.
  for (const run of arrivals) run.throttle = { ...run.throttle!, waitMs: waits.get(run.id)! }
}
