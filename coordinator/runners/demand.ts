import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import { type PoolDemand, PoolSettings } from '@windlass/shared/model/pool.ts'
import type { Db } from '../db/client.ts'
import { hasBit, indexesOf, readCarriers } from '../matching/carriers.ts'
import { lacking } from '../matching/capable.ts'
import { type Needs, readNeeds } from '../matching/needs.ts'
import { mostServed, someServed } from '../matching/max-flow.ts'
import { mapInSlices } from '../slices.ts'
import * as store from './store-demand.ts'

export interface Reading {
  queued: store.QueuedRow[]
  capacity: store.CapacityRow[]
}

type Figures = Omit<PoolDemand, 'pool'>

/** Answers what waits in a pool with these settings, what room there is, and how much of it fits. */
export type DemandReader = (pool: { id: PoolId; settings: object }) => Promise<Figures>

/** What is found so fast is found anew for everybody who asks. */
const FAST_MS = 20
/** Counting a million queued runs takes some tenths of a second; it is done one part in twenty of the time at most. */
const REST_FACTOR = 20

export function createDemandReader(db: Db): DemandReader {
  const found = new Map<string, Promise<Figures>>()
  return ({ id, settings }) => {
    const key = `${id} ${JSON.stringify(settings)}`
    const known = found.get(key)
    if (known) return known
    const since = performance.now()
    const figures = read(db, id).then(({ asked, ...reading }) =>
      figuresOf(reading, PoolSettings.parse(settings), asked),
    )
    const drop = () => found.delete(key)
    found.set(key, figures)
    const rest = () => {
      const tookMs = performance.now() - since
      if (tookMs < FAST_MS) drop()
      else setTimeout(drop, tookMs * REST_FACTOR).unref()
    }
    figures.then(rest, drop)
    return figures
  }
}

/** Of what runners carry only that which is asked for: 20,000 of them may have 64 MB of labels. */
async function read(db: Db, poolId: PoolId): Promise<Reading & { asked: Asked }> {
  const queued = await store.queued(db, poolId)
  const asked = await askedIn(queued)
  const labels = new Set([...asked.largest, ...asked.shown].flatMap((line) => line.labels))
  return { queued, capacity: await store.capacity(db, poolId, [...labels]), asked }
}

/** Runs that need the same, and runners that carry all of the labels and have so many slots in all. */
interface Line extends Needs {
  runs: number
}

/** What waits in a pool, and what of it is compared with the runners. */
interface Asked {
  lines: Line[]
  largest: Line[]
  shown: Omit<PoolDemand['byLabels'][number], 'freeSlots'>[]
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
  return { pool: { id: found.id, name: found.name }, ...(await deps.demand(found)) }
}

/** With turns of others in between: there may be thousands of runners and of combinations of labels. */
export async function figuresOf(
  { queued, capacity }: Reading,
  settings: PoolSettings,
  asked?: Asked,
): Promise<Figures> {
  const { lines, largest, shown } = asked ?? (await askedIn(queued))
  const able = capacity.filter((row) => row.takesWork && lacking(row, settings) === undefined)
  const open = await mapInSlices(able, (row) => openRunner(row, settings.labels))
  const wants = lines.map(slotsOf)
  const count = (is: (row: store.CapacityRow) => boolean) => capacity.filter(is).length
  return {
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
    missingSlots: sum(wants) - (await served(largest, open)),
    byLabels: await byLabels(shown, open),
  }
}

async function askedIn(queued: readonly store.QueuedRow[]): Promise<Asked> {
  const lines = await mapInSlices(queued, ({ needs, runs }): Line => ({ ...readNeeds(needs), runs }))
  const alike = [...Map.groupBy(lines, ({ labels }) => labels.join()).values()]
  const sets = alike.map((group) => ({
    labels: group[0]!.labels,
    queuedRuns: sum(group.map(({ runs }) => runs)),
    queuedSlots: sum(group.map(slotsOf)),
  }))
  return {
    lines,
    largest: lines.toSorted((a, b) => slotsOf(b) - slotsOf(a)).slice(0, MOST_SIDES),
    shown: sets.toSorted((a, b) => b.queuedSlots - a.queuedSlots).slice(0, LABEL_SETS_SHOWN),
  }
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const slotsOf = ({ runs, slots }: Line) => runs * slots

function openRunner({ labels, slots, used }: store.CapacityRow, ofPool: readonly string[]): OpenRunner {
  return { labels: new Set([...labels, ...ofPool]), slots, free: Math.max(0, slots - used) }
}

/** Runners that are alike count as one. */
interface Room extends OpenRunner {
  count: number
}

const freeOf = ({ free, count }: Room) => free * count

/** What nobody asks for makes no difference. */
async function together(open: readonly OpenRunner[], asked: ReadonlySet<string>): Promise<Room[]> {
  // Shorter than the labels themselves, which may have 64 characters each.
  const ordinals = new Map([...asked].map((label, ordinal) => [label, ordinal]))
  const free = open.filter((runner) => runner.free > 0)
  const seen = await mapInSlices(free, (runner) => {
    const labels = [...runner.labels].flatMap((label) => ordinals.get(label) ?? [])
    return { ...runner, key: `${labels.sort((a, b) => a - b).join()} ${runner.free}` }
  })
  const alike = Map.groupBy(seen, ({ key }) => key)
  return [...alike.values()].map((group) => ({ ...group[0]!, count: group.length }))
}

/**
 * Slots of the queue that the free ones could have at once: as many as there can be, or where there are too many
 * combinations at least so many. What is not looked at counts as not served.
 */
async function served(lines: readonly Line[], open: readonly OpenRunner[]): Promise<number> {
  const asked = new Set(lines.flatMap(({ labels }) => labels))
  const alike = await together(open, asked)
  const rooms = alike.sort((a, b) => freeOf(b) - freeOf(a)).slice(0, MOST_SIDES)
  const carrying = await readCarriers(rooms, asked)
  const able = lines.map(({ labels }) => carrying(labels))
  const serve = lines.length * rooms.length <= MOST_PAIRS ? mostServed : someServed
  return serve(lines.map(slotsOf), rooms.map(freeOf), (line, room) =>
    hasBit(able[line]!, room) ? fits(lines[line]!, rooms[room]!) : 0,
  )
}

/** Slots of a room that carries the labels of the line. A run is on one runner, so a rest that is too small serves it nothing. */
const fits = ({ slots }: Line, room: Room) => Math.floor(room.free / slots) * slots * room.count

async function byLabels(shown: Asked['shown'], open: readonly OpenRunner[]): Promise<PoolDemand['byLabels']> {
  const carrying = await readCarriers(open, new Set(shown.flatMap(({ labels }) => labels)))
  const freeFor = (labels: readonly string[]) => sum([...indexesOf(carrying(labels))].map((index) => open[index]!.free))
  return shown.map((each) => ({ ...each, freeSlots: freeFor(each.labels) }))
}
