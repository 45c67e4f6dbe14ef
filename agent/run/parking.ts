import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { AgentRun } from './agent-run.ts'
import type { Slots } from './slots.ts'

type EvictReason = 'age' | 'computes' | 'too many parked' | 'memory' | 'shutdown' | 'draining' | 'no slot'

/** The programs that only wait: who goes on when what it waits for is there, and who has to go to make room. */
export interface Parking {
  readonly size: number
  /** Its program has given its slot back; the entry that says so stands at `seq` in the spool. */
  parked(agentRun: AgentRun, seq: number): void
  /** It goes on, is to stop, or is gone. */
  left(agentRun: AgentRun): void
  /** Entries up to `seq` are committed. A process may only be given up when all that it has said is. */
  committed(agentRun: AgentRun, seq: number): void
  /** What it waits for is there: it goes on as soon as there is a slot. */
  wake(agentRun: AgentRun, completions: readonly Completion[]): void
  /** It said that it only waits, and does not: it goes, and is begun anew when what it waits for is there. */
  computes(agentRun: AgentRun): void
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
  isCommitted(agentRun: AgentRun, seq: number): boolean
  log: Log
}

interface Spot {
  agentRun: AgentRun
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
  readonly #spots = new Map<AgentRun, Spot>()
  /** Looks at the memory while somebody waits. */
  #watch: NodeJS.Timeout | undefined

  constructor(options: ParkingOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#spots.size
  }

  parked(agentRun: AgentRun, seq: number): void {
    const spot = this.#spots.get(agentRun)
    if (spot) spot.seq = seq
    else this.#add(agentRun, seq)
    this.#watchWhileNeeded()
    probe('program.parked', { run: agentRun.offer.run, epoch: agentRun.offer.epoch })
  }

  left(agentRun: AgentRun): void {
    const spot = this.#spots.get(agentRun)
    if (!spot) return
    this.#spots.delete(agentRun)
    clear(spot)
    this.#watchWhileNeeded()
  }

  committed(agentRun: AgentRun, seq: number): void {
    const spot = this.#spots.get(agentRun)
    if (spot?.reason && seq >= spot.seq) this.#evict(spot, spot.reason)
  }

  wake(agentRun: AgentRun, completions: readonly Completion[]): void {
    const spot = this.#spots.get(agentRun)
    const news = agentRun.news(completions)
    if (news.length === 0) return
    if (spot) this.#wake(spot, news)
    else if (!agentRun.isParked) agentRun.wake(news)
  }

  computes(agentRun: AgentRun): void {
    const spot = this.#spots.get(agentRun)
    if (spot) this.#evict(spot, 'computes')
  }

  look(): void {
    const closed = this.#options.closed()
    if (closed) for (const spot of this.#spots.values()) this.#evict(spot, closed)
  }

  #add(agentRun: AgentRun, seq: number): void {
    const spot = newSpot(agentRun, seq)
    this.#spots.set(agentRun, spot)
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
    spot.giveUpSlot = slots.take(() => this.#goOn(spot), spot.agentRun.offer.slots)
  }

  /** Its turn may have come as the one before it was given up, since no more is to begin here. */
  #goOn(spot: Spot): void {
    const closed = this.#options.closed()
    if (closed) this.#evict(spot, closed)
    else spot.agentRun.wake([...spot.completions.values()])
  }

  #evict(spot: Spot, reason: EvictReason): void {
    const why = reasonToGo(spot, reason)
    if (!why) return
    spot.reason = why
    if (!this.#options.isCommitted(spot.agentRun, spot.seq)) return
    spot.isLeaving = true
    clear(spot)
    const { run, epoch } = spot.agentRun.offer
    this.#options.log.debug('run.evicted', { run, epoch, reason: why })
    probe('program.evicted', { run, epoch, reason: why })
    spot.agentRun.evict(why)
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

function newSpot(agentRun: AgentRun, seq: number): Spot {
  return {
    agentRun,
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
