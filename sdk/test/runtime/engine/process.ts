import assert from 'node:assert/strict'
import type { Completion, Mismatch } from '@windlass/shared/wire/journal.ts'
import { createEngine } from '../../../runtime/engine/engine.ts'
import type { Engine } from '../../../runtime/engine/port.ts'
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
}

export type Program = (tools: Tools) => Promise<unknown>

export type End =
  | { how: 'returned'; value: unknown }
  | { how: 'threw'; error: unknown }
  | { how: 'never' }
  | { how: 'evicted' }
  | { how: 'crashed' }
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
  /** Asked before each event, once it is live: what comes next is there now, whether the program has asked for it yet or not. */
  hurries?: () => boolean
  /** Asked when something is there: says it twice. */
  repeats?: () => boolean
}

/**
 * One process that executes the program: a loop with a time of its own, which stands still for the world while the program is
 * led through its past.
 */
export async function execute({ program, world, replay, ...chance }: SessionOptions): Promise<End> {
  const events: Event[] = []
  let time = world.now
  let isHeld = false
  let isParked = false
  /** It has just parked. */
  let isAsked = false
  let isLive = !replay
  let sent = 0
  let told = 0
  let end: End | undefined
  let isThrough = !replay

  function through(): void {
    if (!isThrough) chance.onThrough?.()
    isThrough = true
  }

  const add = (ms: number, keeps: boolean, act: () => void) => {
    const event = { at: time + ms, keeps, act }
    events.push(event)
    return () => void events.splice(0, Infinity, ...events.filter((each) => each !== event))
  }
  const engine: Engine = createEngine(
    { attempt: world.attempt, journal: world.journal(), entries: world.entries(), replay },
    {
      send: (op) => {
        world.apply(structuredClone(op))
        sent += 1
        const count = sent
        add(1, false, () => engine.kept(count))
        if (op.op === 'adopt') add(1, false, () => wake(world.undelivered()))
      },
      together: (say) => say(),
      park: (_kind, heard) => {
        assert.ok(heard >= told, 'it has read all wakes')
        isParked = true
        isAsked = true
        if (!isLive) through()
      },
      live: () => {
        assert.equal(isLive, false, 'live is said once')
        isLive = true
        through()
        time = world.now
      },
      blocked: (mismatch) => {
        end = { how: 'blocked', mismatch }
      },
      holdOn: (hold) => {
        isHeld = hold
      },
      isQuiet: (timers) => events.filter(({ keeps }) => keeps).length <= timers,
      site: () => '',
      warn: () => {},
      soon: (act) => void add(0, true, act),
      later: add,
    },
  )
  function wake(completions: Completion[]): void {
    if (completions.length === 0) return
    isParked = false
    told += 1
    engine.wake(chance.repeats?.() ? [...completions, ...completions] : completions)
  }

  /** Whoever has not taken it over yet is not told. */
  function completeNext(): void {
    const completion = world.completeNext()
    time = Math.max(time, world.now)
    if (world.records.get(completion.n)?.attempt === world.attempt) wake([completion])
  }

  const raw = (ms: number) => new Promise<void>((resolve) => void add(ms, true, resolve))

  function finish(ended: End, how: string): void {
    if (engine.end(how)) end ??= ended
  }
  program({ engine, raw }).then(
    (value) => engine.answered().then(() => finish({ how: 'returned', value }, 'run() returned')),
    (error: unknown) => finish({ how: 'threw', error }, `run() threw ${String(error)}`),
  )

  for (let turns = 0; ; turns++) {
    assert.ok(turns < MOST_TURNS, 'it goes round in circles')
    // All microtasks, however many.
    await new Promise(setImmediate)
    if (end) return end
    if (isAsked && isParked && chance.evicts?.()) return { how: 'evicted' }
    isAsked = false
    if (isLive && !isParked && chance.crashes?.()) return { how: 'crashed' }
    if (isLive && !isParked && world.nextAt() < Infinity && chance.hurries?.()) completeNext()
    if (!isHeld && !events.some(({ keeps }) => keeps)) {
      if (!engine.idle()) finish({ how: 'never' }, 'never')
      continue
    }
    const next = events.reduce<Event | undefined>(
      (first, each) => (first && first.at <= each.at ? first : each),
      undefined,
    )
    const worldAt = isLive || isParked ? world.nextAt() : Infinity
    assert.ok(next || worldAt < Infinity, 'it is held, and nothing will ever happen')
    if (next && next.at <= worldAt) {
      events.splice(events.indexOf(next), 1)
      time = Math.max(time, next.at)
      if (isLive) world.now = Math.max(world.now, time)
      next.act()
    } else completeNext()
  }
}
