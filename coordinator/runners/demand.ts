import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import { type PoolDemand, PoolSettings } from '@windlass/shared/model/pool.ts'
import type { Db } from '../db/client.ts'
import { lacking } from '../matching/capable.ts'
import { type Needs, readNeeds } from '../matching/needs.ts'
import { mostServed, someServed } from '../matching/max-flow.ts'
import * as store from './store-demand.ts'

export interface Reading {
  queued: store.QueuedRow[]
  capacity: store.CapacityRow[]
}

/** Answers what waits in a pool and what room there is. */
export type DemandReader = (poolId: PoolId) => Promise<Reading>

/** What is read so fast is read anew for everybody who asks. */
const FAST_MS = 20
/** Counting a million queued runs takes some tenths of a second; it is done one part in twenty of the time at most. */
const REST_FACTOR = 20

export function createDemandReader(db: Db): DemandReader {
  const readings = new Map<PoolId, Promise<Reading>>()
  return (poolId) => {
    const known = readings.get(poolId)
    if (known) return known
    const since = performance.now()
    const reading = read(db, poolId)
    const drop = () => readings.delete(poolId)
    readings.set(poolId, reading)
    const rest = () => {
      const tookMs = performance.now() - since
      if (tookMs < FAST_MS) drop()
      else setTimeout(drop, tookMs * REST_FACTOR).unref()
    }
    reading.then(rest, drop)
    return reading
  }
}

async function read(db: Db, poolId: PoolId): Promise<Reading> {
  const [queued, capacity] = await Promise.all([store.queued(db, poolId), store.capacity(db, poolId)])
  return { queued, capacity }
}

/** Runs that need the same, and runners that carry all of the labels and have so many slots in all. */
interface Line extends Needs {
  runs: number
}

interface OpenRunner {
  labels: ReadonlySet<string>
  slots: number
  free: number
}

const LABEL_SETS_SHOWN = 50
/** Pairs of lines and rooms of which the best use is looked for: 10 ms at most, as it grows with the square of them. */
const MOST_PAIRS = 2500
/** Lines, and rooms, that are looked at, the largest first: an org may ask for as many combinations as it has runs. */
const MOST_SIDES = 500

/** What autoscalers ask: how much waits, how much room there is, and how much of it fits. */
export async function demandOf(
  deps: { db: Db; demand: DemandReader },
  orgId: OrgId,
  pool: string,
): Promise<PoolDemand> {
  const found = await store.poolOf(deps.db, orgId, pool)
  if (!found) throw new Fault('NOT_FOUND', { pool })
  const { queued, capacity } = await deps.demand(found.id)
  const settings = PoolSettings.parse(found.settings)
  const lines = queued.map(({ needs, runs }): Line => ({ ...readNeeds(needs), runs }))
  const open = capacity
    .filter((row) => row.takesWork && lacking(row, settings) === undefined)
    .map((row) => openRunner(row, settings.labels))
  const wants = lines.map(slotsOf)
  const count = (is: (row: store.CapacityRow) => boolean) => capacity.filter(is).length
  return {
    pool: { id: found.id, name: found.name },
    queuedRuns: sum(lines.map((line) => line.runs)),
    queuedSlots: sum(wants),
    oldestQueuedAt: queued.length > 0 ? Math.min(...queued.map((row) => row.oldestAt.getTime())) : null,
    executingRuns: sum(capacity.map((row) => row.executing)),
    usedSlots: sum(capacity.map((row) => row.used)),
    slots: sum(open.map((runner) => runner.slots)),
    freeSlots: sum(open.map((runner) => runner.free)),
    runners: {
      online: count((row) => row.online),
      takingWork: open.length,
      draining: count((row) => row.isDraining),
      offline: count((row) => !row.online),
    },
    missingSlots: sum(wants) - served(lines, open),
    byLabels: byLabels(lines, open),
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const slotsOf = ({ runs, slots }: Line) => runs * slots

function openRunner({ labels, slots, used }: store.CapacityRow, ofPool: readonly string[]): OpenRunner {
  return { labels: new Set([...labels, ...ofPool]), slots, free: Math.max(0, slots - used) }
}

const carries = ({ labels }: OpenRunner, asked: readonly string[]) => asked.every((label) => labels.has(label))

/** Runners that are alike count as one. */
interface Room extends OpenRunner {
  count: number
}

const freeOf = ({ free, count }: Room) => free * count

/** What nobody asks for makes no difference. */
function together(open: readonly OpenRunner[], asked: ReadonlySet<string>): Room[] {
  const seen = open
    .filter(({ free }) => free > 0)
    .map(({ labels, slots, free }) => ({
      labels: new Set([...labels].filter((label) => asked.has(label))),
      slots,
      free,
    }))
  const alike = Map.groupBy(seen, ({ labels, free }) => JSON.stringify([[...labels].sort(), free]))
  return [...alike.values()].map((group) => ({ ...group[0]!, count: group.length }))
}

/**
 * Slots of the queue that the free ones could have at once: as many as there can be, or where there are too many
 * combinations at least so many. What is not looked at counts as not served.
 */
function served(all: readonly Line[], open: readonly OpenRunner[]): number {
  const lines = all.toSorted((a, b) => slotsOf(b) - slotsOf(a)).slice(0, MOST_SIDES)
  const rooms = together(open, new Set(lines.flatMap(({ labels }) => labels)))
    .sort((a, b) => freeOf(b) - freeOf(a))
    .slice(0, MOST_SIDES)
  const serve = lines.length * rooms.length <= MOST_PAIRS ? mostServed : someServed
  return serve(lines.map(slotsOf), rooms.map(freeOf), (line, room) => fits(lines[line]!, rooms[room]!))
}

/** Slots of the room that runs of the line could have. A run is on one runner, so a rest that is too small serves it nothing. */
function fits({ slots, labels }: Line, room: Room): number {
  return carries(room, labels) ? Math.floor(room.free / slots) * slots * room.count : 0
}

function byLabels(lines: readonly Line[], open: readonly OpenRunner[]): PoolDemand['byLabels'] {
  const alike = [...Map.groupBy(lines, ({ labels }) => labels.join()).values()]
  const all = alike.map((group) => ({
    labels: group[0]!.labels,
    queuedRuns: sum(group.map(({ runs }) => runs)),
    queuedSlots: sum(group.map(slotsOf)),
  }))
  const shown = all.toSorted((a, b) => b.queuedSlots - a.queuedSlots).slice(0, LABEL_SETS_SHOWN)
  const freeFor = (labels: readonly string[]) =>
    sum(open.filter((runner) => carries(runner, labels)).map(({ free }) => free))
  return shown.map((each) => ({ ...each, freeSlots: freeFor(each.labels) }))
}
