// Races whose parties do work between their calls that is no step, and takes another time in each process: who has won,
// has won in the next attempt, in a replay, and in a run that is to end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Tools } from './process.ts'
import { aWorld, type World } from './world.ts'

const MOST_ATTEMPTS = 4
const MOST_EVICTIONS = 6
/** Longer than any of these programs takes until it stands where it stood. */
const ALL_THE_TIME = 600_000

type Plan =
  | { do: 'step' | 'ask' | 'sleep' | 'doze' }
  | { do: 'raw'; ms: number }
  | { do: 'seq' | 'all' | 'race'; parts: Plan[] }
  | { do: 'within'; body: Plan }

const call = fc.record({
  do: fc.constantFrom('step' as const, 'step' as const, 'ask' as const, 'sleep' as const, 'doze' as const),
})
const raw = fc.record({ do: fc.constant('raw' as const), ms: fc.integer({ min: 0, max: 30 }) })

const { races: plans } = fc.letrec<{ plan: Plan; races: Plan }>((tie) => {
  const parts = fc.array(tie('plan'), { minLength: 1, maxLength: 3 })
  // The last word is that of a call: a party that ends with raw work may come in at any time.
  const party = fc.tuple(tie('plan'), call).map((each): Plan => ({ do: 'seq', parts: each }))
  const races = fc.record({ do: fc.constant('race' as const), parts: fc.array(party, { minLength: 2, maxLength: 3 }) })
  return {
    races: fc.tuple(tie('plan'), races, tie('plan'), tie('plan')).map((each): Plan => ({ do: 'seq', parts: each })),
    plan: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      call,
      raw,
      fc.record({ do: fc.constant('seq' as const), parts }),
      races,
      fc.record({ do: fc.constant('all' as const), parts }),
      races,
      fc.record({ do: fc.constant('within' as const), body: tie('plan') }),
    ),
  }
})

/** Over all processes. */
interface Diary {
  /** What was done for whoever has won, by the place of the race. */
  readonly winners: Map<string, Set<number>>
  readonly executed: Map<string, number>
  /** Races that were over, and reject in this process. */
  readonly rejected: string[]
}

interface Setting {
  calls: Calls
  tools: Tools
  diary: Diary
  /** Where it is in the plan: no two calls are equal. */
  path: string
  pace: number
}

async function follow(plan: Plan, at: Setting): Promise<void> {
  const { calls, tools, path, pace } = at
  const part = (inner: Plan, index: number) => follow(inner, { ...at, path: `${path}.${index}` })
  if (plan.do === 'seq') for (const [index, inner] of plan.parts.entries()) await part(inner, index)
  else if (plan.do === 'all') await Promise.all(plan.parts.map(part))
  else if (plan.do === 'race')
    await race(
      plan.parts.map((inner, index) => part(inner, index).then(() => index)),
      at,
    )
  else if (plan.do === 'raw') await tools.raw(plan.ms * pace)
  else if (plan.do === 'step') await done(path, at)
  else if (plan.do === 'within') await calls.step(path, () => part(plan.body, 0))
  else if (plan.do === 'ask') await calls.ask(path)
  else await calls.sleep(plan.do === 'doze' ? 1 + (placeOf(path) % 900) : 1_000 + placeOf(path))
}

async function done(name: string, { calls, diary }: Setting): Promise<void> {
  await calls.step(name, () => void diary.executed.set(name, (diary.executed.get(name) ?? 0) + 1))
}

async function race(parties: Promise<number>[], at: Setting): Promise<void> {
  const { diary, path } = at
  for (const party of parties) party.catch(() => {})
  const before = diary.winners.get(path) ?? new Set()
  const winner = await Promise.race(parties).catch((error: unknown) => {
    if (before.size > 0) diary.rejected.push(path)
    throw error
  })
  await at.calls.step(`${path} won by ${winner}`, () => void diary.winners.set(path, before.add(winner)))
}

/** A number of its own, for any path of these. */
const placeOf = (path: string) => Buffer.from(path).reduce((sum, each) => (sum * 31 + each) % 100_003, 7)

/** Nothing of chance: the same entry takes as long in each run. */
const delayOf = ({ n, kind }: JournalRecord) => 1 + ((n * 7919 + kind.length * 104_729) % 50)

/** A die that shows the given numbers in turn. */
function dieOf(numbers: number[]) {
  let at = 0
  return (sides: number) => (numbers[at++ % numbers.length] ?? 0) % sides
}

interface Trial {
  world: World
  plan: Plan
  roll: (sides: number) => number
  diary: Diary
  stop: { process: number; event: number; graceMs: number }
}

async function untilItsEnd({ world, plan, roll, diary, stop }: Trial): Promise<End> {
  let evictions = 0
  let replay = false
  for (let at = 0; ; at++) {
    let events = 0
    let isStopped = false
    const pace = roll(4)
    const stops = () => {
      if (at !== stop.process || events++ !== stop.event) return undefined
      isStopped = true
      return stop.graceMs
    }
    const end = await execute({
      program: (tools) => follow(plan, { calls: callsOn(tools), tools, diary, path: '', pace }),
      world,
      replay,
      stops,
      evicts: () => !isStopped && evictions < MOST_EVICTIONS && roll(3) > 0,
      crashes: () => !isStopped && world.attempt < MOST_ATTEMPTS && roll(10) === 0,
    })
    if (end.how !== 'evicted' && end.how !== 'crashed') return end
    replay = end.how === 'evicted'
    if (replay) evictions += 1
    else world.attempt += 1
    // At least one after an eviction, or it would be evicted for ever.
    for (let left = (replay ? 1 : 0) + roll(4); left > 0 && world.nextAt() < Infinity; left--) world.completeNext()
  }
}

const dice = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 })
const stops = fc.record({
  process: fc.nat(5),
  event: fc.nat(14),
  graceMs: fc.constantFrom(0, 20, 60, ALL_THE_TIME, ALL_THE_TIME),
})

test('a race that was won by a call behind raw work keeps its winner, whatever becomes of the process', async (t) => {
  await fc.assert(
    fc.asyncProperty(plans, dice, stops, async (plan, numbers, stop) => {
      const diary: Diary = { winners: new Map(), executed: new Map(), rejected: [] }
      const end = await untilItsEnd({ world: aWorld(delayOf), plan, roll: dieOf(numbers), diary, stop })
      assert.ok(end.how === 'returned' || end.how === 'threw', JSON.stringify(end))
      for (const [path, winners] of diary.winners) assert.equal(winners.size, 1, `race ${path}: ${[...winners].join()}`)
      for (const [step, times] of diary.executed) assert.equal(times, 1, `step ${step}`)
      if (stop.graceMs === ALL_THE_TIME) assert.deepEqual(diary.rejected, [])
    }),
    { numRuns: amount({ test: 60, storm: 600 }), ...repeatable(t) },
  )
})
