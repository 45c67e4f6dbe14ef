import assert from 'node:assert/strict'
import type { Completion, JournalOp, Mismatch, SuspendKind } from '@windlass/shared/wire/journal.ts'
import { createEngine } from '../../../runtime/engine/engine.ts'
import type { Engine, Port } from '../../../runtime/engine/port.ts'
import type { World } from './world.ts'

// Far more than any of these programs takes.
const MOST_TURNS = 20_000

interface Event {
  at: number
  keeps: boolean
  act: () => void
}

export interface Tools {
  engine: Engine
  /** Something that the journal knows nothing of, such as a request. */
  raw: (ms: number) => Promise<void>
  /** The same, but it keeps no process, as a timer with `unref()`. */
  unkept: (ms: number) => Promise<void>
}

export type Program = (tools: Tools) => Promise<unknown>

export type End =
  | { how: 'returned'; value: unknown }
  | { how: 'threw'; error: unknown }
  | { how: 'never' }
  | { how: 'evicted' }
  | { how: 'crashed' }
  /** Its agent is being stopped: the next attempt goes on. */
  | { how: 'left' }
  | { how: 'blocked'; mismatch: Mismatch }

export interface SessionOptions {
  program: Program
  world: World
  replay: boolean
  /** The replay is through: the program stands where its last process stood. */
  onThrough?: () => void
  /** Asked when it is parked. */
  evicts?: () => boolean
  /** Asked before each event, once it is live. */
  crashes?: () => boolean
  /**
   * Asked before each event, once it is live: what comes next is there now, whether the program has asked for it yet
   * or not.
   */
  hurries?: () => boolean
  /** A word has gone to the journal. */
  onSent?: () => void
  /** Asked before each event: its agent is being stopped from now on, and whether the program has noticed. */
  handsOver?: () => { isNoticed: boolean } | undefined
  /** Asked before each event: the run is to end, and this long is there for it. Undefined: not now. */
  stops?: () => number | undefined
  /** Asked when something is there: says it twice. */
  repeats?: () => boolean
  onWarning?: (text: string) => void
}

/** One process that executes the program, to its end or until chance takes it away. */
export async function execute(options: SessionOptions): Promise<End> {
  return await new SimulatedProcess(options).run()
}

/**
 * A loop with a time of its own, which stands still for the world while the program is led through its past. Most of it
 * is the port of the engine.
 */
class SimulatedProcess implements Port {
  readonly #options: SessionOptions
  readonly #engine: Engine
  #events: Event[] = []
  #time: number
  #isHeld = false
  #isParked = false
  /** It has just parked. */
  #isAsked = false
  #isLive: boolean
  #isThrough: boolean
  /** Words to the journal. */
  #sent = 0
  /** Wakes. */
  #wakes = 0
  #handover: { isNoticed: boolean } | undefined
  #isStopped = false
  #end: End | undefined

  constructor(options: SessionOptions) {
    const { world, replay } = options
    this.#options = options
    this.#time = world.now
    this.#isLive = this.#isThrough = !replay
    const handed = { attempt: world.attempt, journal: world.journal(), entries: world.entries(), forgotten: 0 }
    this.#engine = createEngine({ ...handed, replay }, this)
  }

  async run(): Promise<End> {
    this.#begin()
    for (let turns = 0; ; turns++) {
      assert.ok(turns < MOST_TURNS, 'it goes round in circles')
      // All microtasks, however many.
      await new Promise(setImmediate)
      const end = this.#end ?? this.#takenAway()
      if (end) return end
      this.#hurry()
      if (this.#hearsOfStop()) continue
      if (this.#stays()) this.#next()
      else if (!this.#engine.idle()) this.#finish({ how: 'never' }, 'never')
    }
  }

  #begin(): void {
    const engine = this.#engine
    const raw = (ms: number) => new Promise<void>((resolve) => void this.later(ms, true, resolve))
    const unkept = (ms: number) => new Promise<void>((resolve) => void this.later(ms, false, resolve))
    this.#options.program({ engine, raw, unkept }).then(
      (value) => engine.answered().then(() => this.#finish({ how: 'returned', value }, 'run() returned')),
      (error: unknown) => {
        this.#options.world.ledBy = engine.ledBy(error)
        this.#finish({ how: 'threw', error }, `run() threw ${String(error)}`)
      },
    )
  }

  #finish(end: End, how: string): void {
    const isItsEnd = end.how === 'returned' && !this.#handover?.isNoticed && !this.#engine.lacksFailure()
    if (this.#handover && !this.#isStopped && !isItsEnd) this.#end ??= { how: 'left' }
    else if (this.#engine.end(how, end.how === 'threw')) this.#end ??= end
  }

  #takenAway(): End | undefined {
    const { evicts, crashes } = this.#options
    if (this.#isAsked && this.#isParked && evicts?.()) return { how: 'evicted' }
    this.#isAsked = false
    return this.#isActive() && crashes?.() ? { how: 'crashed' } : undefined
  }

  #hurry(): void {
    const { world, hurries } = this.#options
    if (this.#isActive() && world.nextAt() < Infinity && hurries?.()) this.#completeNext()
  }

  /** As from the host. */
  #hearsOfStop(): boolean {
    const handover = this.#isStopped ? undefined : this.#options.handsOver?.()
    if (handover) {
      this.#handover ??= handover
      this.#engine.handOver(() => handover.isNoticed)
    }
    const graceMs = this.#options.stops?.()
    if (graceMs === undefined) return handover !== undefined
    this.#isStopped = true
    this.#engine.whenThere(() => this.#engine.stop(new Error('stopped'), graceMs / 4), graceMs / 2)
    return true
  }

  #isActive(): boolean {
    return this.#isLive && !this.#isParked
  }

  #stays(): boolean {
    return this.#isHeld || this.#events.some(({ keeps }) => keeps)
  }

  /** The next thing that happens, here or in the world. */
  #next(): void {
    const { world } = this.#options
    const [next] = this.#events.toSorted((a, b) => a.at - b.at)
    const worldAt = this.#isLive || this.#isParked ? world.nextAt() : Infinity
    assert.ok(next || worldAt < Infinity, 'it is held, and nothing will ever happen')
    if (!next || next.at > worldAt) return this.#completeNext()
    this.#forget(next)
    this.#time = Math.max(this.#time, next.at)
    if (this.#isLive) world.now = Math.max(world.now, this.#time)
    next.act()
  }

  /** Whoever has not taken it over yet is not told. */
  #completeNext(): void {
    const { world } = this.#options
    const completion = world.completeNext()
    this.#time = Math.max(this.#time, world.now)
    if (world.records.get(completion.n)?.attempt === world.attempt) this.#wake([completion])
  }

  #wake(completions: Completion[]): void {
    if (completions.length === 0) return
    this.#isParked = false
    this.#wakes += 1
    this.#engine.wake(this.#options.repeats?.() ? [...completions, ...completions] : completions)
  }

  #through(): void {
    if (!this.#isThrough) this.#options.onThrough?.()
    this.#isThrough = true
  }

  #forget(event: Event): void {
    this.#events = this.#events.filter((each) => each !== event)
  }

  // What the engine asks of it.

  send(op: JournalOp): void {
    const { world } = this.#options
    world.apply(structuredClone(op))
    this.#options.onSent?.()
    this.#sent += 1
    const count = this.#sent
    this.later(1, false, () => this.#engine.confirm(count))
    if (op.op === 'adopt') this.later(1, false, () => this.#wake(world.undelivered()))
  }

  together(say: () => void): void {
    say()
  }

  park(_kind: SuspendKind, heard: number): void {
    assert.ok(heard >= this.#wakes, 'it has read all wakes')
    this.#isParked = true
    this.#isAsked = true
    if (!this.#isLive) this.#through()
  }

  live(): void {
    assert.equal(this.#isLive, false, 'live is said once')
    this.#isLive = true
    this.#through()
    this.#time = this.#options.world.now
  }

  blocked(mismatch: Mismatch): void {
    this.#end = { how: 'blocked', mismatch }
  }

  holdOn(hold: boolean): void {
    this.#isHeld = hold
  }

  isQuiet(timers: number): boolean {
    return this.#events.filter(({ keeps }) => keeps).length <= timers
  }

  site(): string {
    return ''
  }

  warn(text: string): void {
    this.#options.onWarning?.(text)
  }

  soon(act: () => void): void {
    this.later(0, true, act)
  }

  later(ms: number, keeps: boolean, act: () => void): () => void {
    const event = { at: this.#time + ms, keeps, act }
    this.#events.push(event)
    return () => this.#forget(event)
  }
}
