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
  return new ParkingLot(options)
}

class ParkingLot implements Parking {
  readonly #options: ParkingOptions
  /** The one that has waited longest is the first. */
  readonly #spots = new Map<Live, Spot>()
  /** Looks at the memory while somebody waits. */
  #watch: NodeJS.Timeout | undefined

  constructor(options: ParkingOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#spots.size
  }

  parked(live: Live, seq: number): void {
    const spot = this.#spots.get(live)
    if (spot) spot.seq = seq
    else this.#add(live, seq)
    this.#watchWhileNeeded()
    probe('program.parked', { run: live.offer.run, epoch: live.offer.epoch })
  }

  left(live: Live): void {
    const spot = this.#spots.get(live)
    if (!spot) return
    this.#spots.delete(live)
    clear(spot)
    this.#watchWhileNeeded()
  }

  committed(live: Live, seq: number): void {
    const spot = this.#spots.get(live)
    if (spot?.reason && seq >= spot.seq) this.#evict(spot, spot.reason)
  }

  wake(live: Live, completions: readonly Completion[]): void {
    const spot = this.#spots.get(live)
    const news = live.news(completions)
    if (news.length === 0) return
    if (spot) this.#wake(spot, news)
    else if (!live.isParked) live.wake(news)
  }

  look(): void {
    const closed = this.#options.closed()
    if (closed) for (const spot of this.#spots.values()) this.#evict(spot, closed)
  }

  #add(live: Live, seq: number): void {
    const spot = newSpot(live, seq)
    this.#spots.set(live, spot)
    const ageMs = this.#options.ageMs()
    const closed = this.#options.closed()
    if (closed) this.#evict(spot, closed)
    else if (ageMs === 0) this.#evict(spot, 'age')
    else spot.ageTimer = setTimeout(() => this.#evict(spot, 'age'), ageMs)
    const going = [...this.#spots.values()].filter((each) => each.reason).length
    this.#evictOldest(this.#spots.size - going - this.#options.most, 'too many parked')
  }

  #wake(spot: Spot, completions: readonly Completion[]): void {
    if (spot.isLeaving || EMPTYING.includes(spot.reason)) return
    for (const completion of completions) spot.completions.set(completion.n, completion)
    if (spot.slotTimer) return
    const { slots, wakeMs } = this.#options
    spot.reason = undefined
    clearTimeout(spot.ageTimer)
    spot.slotTimer = setTimeout(() => this.#evict(spot, 'no slot'), wakeMs)
    spot.giveUpSlot = slots.take(() => spot.live.wake([...spot.completions.values()]), spot.live.offer.slots)
  }

  #evict(spot: Spot, reason: EvictReason): void {
    const why = reasonToGo(spot, reason)
    if (!why) return
    spot.reason = why
    if (!this.#options.isCommitted(spot.live, spot.seq)) return
    spot.isLeaving = true
    clear(spot)
    const { run, epoch } = spot.live.offer
    this.#options.log.debug('run.evicted', { run, epoch, reason: why })
    probe('program.evicted', { run, epoch, reason: why })
    spot.live.evict(why)
  }

  #evictOldest(count: number, reason: EvictReason): void {
    const idle = [...this.#spots.values()].filter((spot) => !spot.reason && spot.completions.size === 0)
    for (const spot of idle.slice(0, Math.max(0, count))) this.#evict(spot, reason)
  }

  #lookAtMemory(): void {
    const { memoryReserve, log } = this.#options
    if (this.#options.memoryFree() >= memoryReserve) return
    const count = Math.ceil(this.#spots.size / SHARE_AT_ONCE)
    log.warn('parking.memory', { parked: this.#spots.size, evicted: count })
    this.#evictOldest(count, 'memory')
  }

  #watchWhileNeeded(): void {
    if (this.#spots.size === 0) {
      clearInterval(this.#watch)
      this.#watch = undefined
    } else this.#watch ??= setInterval(() => this.#lookAtMemory(), this.#options.memoryMs).unref()
  }
}

function newSpot(live: Live, seq: number): Spot {
  return {
    live,
    seq,
    reason: undefined,
    isLeaving: false,
    completions: new Map(),
    giveUpSlot: undefined,
    slotTimer: undefined,
    ageTimer: undefined,
  }
}

/**
 * Why it is to go, if it is to. One that has been woken goes only where there is no choice; else the first reason
 * stays.
 */
export function reasonToGo(
  spot: Pick<Spot, 'isLeaving' | 'completions' | 'reason'>,
  reason: EvictReason,
): EvictReason | undefined {
  if (spot.isLeaving) return undefined
  if (NO_CHOICE.includes(reason)) return reason
  return spot.completions.size > 0 ? undefined : (spot.reason ?? reason)
}

function clear(spot: Spot): void {
  clearTimeout(spot.ageTimer)
  clearTimeout(spot.slotTimer)
  spot.giveUpSlot?.()
}
