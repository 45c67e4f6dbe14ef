import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Live } from './live.ts'
import type { Slots } from './slots.ts'

type EvictReason = 'age' | 'too many parked' | 'memory' | 'shutdown' | 'draining' | 'no slot'

/** The programs that only wait: who goes on when what it waits for is there, and who has to go to make room. */
export interface Parking {
  readonly size: number
  /** Its program has given its slot back; the entry that says so stands at `seq` in the spool. */
  parked(live: Live, seq: number): void
  /** It goes on, is to stop, or is gone. */
  left(live: Live): void
  /** Entries up to `seq` are committed. A process may only be given up when all that it has said is. */
  committed(live: Live, seq: number): void
  /** What it waits for is there: it goes on as soon as there is a slot. */
  wake(live: Live, completions: readonly Completion[]): void
  /** Looks again whether anything may wait here: if not, all that does is given up, so that it goes on elsewhere. */
  look(): void
}

interface ParkingOptions {
  slots: Slots
  /** Why nothing may wait here, where that is so: the agent is being emptied. */
  closed(): 'shutdown' | 'draining' | undefined
  /** How long a process may wait; 0: it is given up at once. */
  ageMs(): number
  most: number
  /** How long a wake may wait for a slot here, before another runner is to have it. */
  wakeMs: number
  /** Share of the memory that is to stay free. */
  memoryReserve: number
  memoryFree(): number
  /** How often free memory is read while something is parked. */
  memoryMs: number
  isCommitted(live: Live, seq: number): boolean
  log: Log
}

interface Spot {
  live: Live
  seq: number
  /** Why it is to go; it goes when its last word is committed. */
  reason: EvictReason | undefined
  isLeaving: boolean
  /** What it is to be given when there is a slot. */
  completions: Map<number, Completion>
  giveUpSlot: (() => void) | undefined
  slotTimer: NodeJS.Timeout | undefined
  ageTimer: NodeJS.Timeout | undefined
}

/** Part of what is parked that goes at each look while memory is short: how much that frees shows at the next one. */
const SHARE_AT_ONCE = 8
const EMPTYING: readonly (EvictReason | undefined)[] = ['shutdown', 'draining']
const NO_CHOICE: readonly EvictReason[] = ['no slot', 'shutdown', 'draining']

export function createParking(options: ParkingOptions): Parking {
  const { slots, log } = options
  /** The one that has waited longest is the first. */
  const spots = new Map<Live, Spot>()
  let watch: NodeJS.Timeout | undefined

  function evict(spot: Spot, reason: EvictReason): void {
    if (spot.isLeaving) return
    if (spot.completions.size > 0 && !NO_CHOICE.includes(reason)) return
    spot.reason = NO_CHOICE.includes(reason) ? reason : (spot.reason ?? reason)
    if (!options.isCommitted(spot.live, spot.seq)) return
    spot.isLeaving = true
    clear(spot)
    const { run, epoch } = spot.live.offer
    log.debug('run.evicted', { run, epoch, reason: spot.reason })
    probe('program.evicted', { run, epoch, reason: spot.reason })
    spot.live.evict(spot.reason)
  }

  function clear(spot: Spot): void {
    clearTimeout(spot.ageTimer)
    clearTimeout(spot.slotTimer)
    spot.giveUpSlot?.()
  }

  function evictOldest(count: number, reason: EvictReason): void {
    const idle = [...spots.values()].filter((spot) => !spot.reason && spot.completions.size === 0)
    for (const spot of idle.slice(0, Math.max(0, count))) evict(spot, reason)
  }

  function lookAtMemory(): void {
    if (options.memoryFree() >= options.memoryReserve) return
    const count = Math.ceil(spots.size / SHARE_AT_ONCE)
    log.warn('parking.memory', { parked: spots.size, evicted: count })
    evictOldest(count, 'memory')
  }

  function watchWhileNeeded(): void {
    if (spots.size === 0) {
      clearInterval(watch)
      watch = undefined
    } else watch ??= setInterval(lookAtMemory, options.memoryMs).unref()
  }

  function add(live: Live, seq: number): void {
    const spot: Spot = {
      live,
      seq,
      reason: undefined,
      isLeaving: false,
      completions: new Map(),
      giveUpSlot: undefined,
      slotTimer: undefined,
      ageTimer: undefined,
    }
    spots.set(live, spot)
    const ageMs = options.ageMs()
    const closed = options.closed()
    if (closed) evict(spot, closed)
    else if (ageMs === 0) evict(spot, 'age')
    else spot.ageTimer = setTimeout(() => evict(spot, 'age'), ageMs)
    const going = [...spots.values()].filter((each) => each.reason).length
    evictOldest(spots.size - going - options.most, 'too many parked')
  }

  function wake(spot: Spot, completions: readonly Completion[]): void {
    if (spot.isLeaving || EMPTYING.includes(spot.reason)) return
    for (const completion of completions) spot.completions.set(completion.n, completion)
    if (spot.slotTimer) return
    spot.reason = undefined
    clearTimeout(spot.ageTimer)
    spot.slotTimer = setTimeout(() => evict(spot, 'no slot'), options.wakeMs)
    spot.giveUpSlot = slots.take(() => spot.live.wake([...spot.completions.values()]), spot.live.offer.slots)
  }

  return {
    get size() {
      return spots.size
    },
    parked(live, seq) {
      const spot = spots.get(live)
      if (spot) spot.seq = seq
      else add(live, seq)
      watchWhileNeeded()
      probe('program.parked', { run: live.offer.run, epoch: live.offer.epoch })
    },
    left(live) {
      const spot = spots.get(live)
      if (!spot) return
      spots.delete(live)
      clear(spot)
      watchWhileNeeded()
    },
    committed(live, seq) {
      const spot = spots.get(live)
      if (spot?.reason && seq >= spot.seq) evict(spot, spot.reason)
    },
    wake(live, completions) {
      const spot = spots.get(live)
      const news = live.news(completions)
      if (news.length === 0) return
      if (spot) wake(spot, news)
      else if (!live.isParked) live.wake(news)
    },
    look() {
      const closed = options.closed()
      if (closed) for (const spot of spots.values()) evict(spot, closed)
    },
  }
}
