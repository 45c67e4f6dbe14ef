import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { execute, type End } from './process.ts'
import { plans, programOf, type Plan, type Seen } from './programs.ts'
import { aWorld, type World } from './world.ts'

const MOST_EVICTIONS = 10

const noSeen = (): Seen => ({ branches: new Map(), executed: new Map() })

/** Nothing of chance: the same entry takes as long in each run. */
const delayOf = ({ n, kind }: JournalRecord) => 1 + ((n * 7919 + kind.length * 104_729) % 50)

async function uninterrupted(plan: Plan): Promise<{ end: End; seen: Seen }> {
  const seen = noSeen()
  const end = await execute({ program: programOf(plan, seen), world: aWorld(delayOf), replay: false })
  return { end, seen }
}

/** A die that shows the given numbers in turn. */
function dieOf(numbers: number[]) {
  let at = 0
  return (sides: number) => (numbers[at++ % numbers.length] ?? 0) % sides
}

/** What lies within a step that has its result is not gone through again. */
function assertSame(now: Seen['branches'], before: Seen['branches']): void {
  for (const [branch, values] of before) {
    if (now.has(branch) || !branch.includes('<')) assert.deepEqual(now.get(branch), values, `branch ${branch}`)
  }
  for (const branch of now.keys()) assert.ok(before.has(branch), `branch ${branch} is new`)
}

interface Trial {
  world: World
  seen: Seen
  plan: Plan
  roll: (sides: number) => number
}

/**
 * Executes the plan, evicted whenever the die says so, and asserts that each process comes to where the last one stood.
 */
async function withEvictions({ world, seen, plan, roll }: Trial, mayCrash: boolean): Promise<End> {
  let replay = false
  for (let evictions = 0; ; evictions++) {
    const before = structuredClone(seen.branches)
    const onThrough = () => assertSame(seen.branches, before)
    const evicts = () => evictions < MOST_EVICTIONS && roll(3) > 0
    const crashes = () => mayCrash && world.attempt < 3 && roll(10) === 0
    const hurries = () => world.attempt > 1 && roll(4) === 0
    const program = programOf(plan, seen)
    const repeats = () => roll(2) === 0
    const end = await execute({ program, world, replay, onThrough, evicts, crashes, hurries, repeats })
    if (end.how === 'crashed') world.attempt += 1
    else if (end.how !== 'evicted') return end
    replay = end.how === 'evicted'
    // At least one after an eviction, or it would be evicted for ever.
    for (let left = (replay ? 1 : 0) + roll(3); left > 0 && world.nextAt() < Infinity; left--) world.completeNext()
  }
}

const dice = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 })

async function comesToTheSameEnd(plan: Plan, numbers: number[]): Promise<void> {
  const expected = await uninterrupted(plan)
  const trial = { world: aWorld(delayOf), seen: noSeen(), plan, roll: dieOf(numbers) }
  assert.deepEqual(await withEvictions(trial, false), expected.end)
  assert.deepEqual(trial.seen.executed, expected.seen.executed)
}

/** Calls with other arguments in each process, or work that the journal knows nothing of; for both see below. */
const calm = fc.oneof(
  plans({ races: false, raw: true, drifts: false }),
  plans({ races: false, raw: false, drifts: true }),
)

test('programs that are evicted at any time come to the same end, and do nothing twice', async (t) => {
  await fc.assert(fc.asyncProperty(calm, dice, comesToTheSameEnd), {
    numRuns: amount({ test: 200, storm: 500 }),
    ...repeatable(t),
  })
})

// A call whose arguments are other ones is known again only when nothing else is in flight: by then raw work that its
// result had overtaken is done, and what follows from that is called first. Of equal calls one then takes the entry of
// the other. To bind it at once would take it for the wrong one where raw work is quicker than it was.
const OVERTAKEN = 'raw work overtakes a call with drifting arguments, and equal calls behind them change places'

test(
  'a program with a drifting call, raw work beside it and equal calls behind both',
  { todo: OVERTAKEN },
  async () => {
    const step: Plan = { do: 'step', id: 3 }
    const input: Plan = { do: 'input', id: 0 }
    const seq = (...parts: Plan[]): Plan => ({ do: 'seq', parts })
    const plan: Plan = {
      do: 'all',
      parts: [
        seq({ do: 'drifts', id: 0 }, step, { do: 'step', id: 0 }, input),
        seq({ do: 'raw', ms: 16 }, { do: 'all', parts: [step, input] }),
        { do: 'within', id: 0, body: { do: 'sleep', id: 0, ms: 5000 } },
      ],
    }
    await comesToTheSameEnd(plan, [4, 0])
  },
)

test('races keep their winners, whoever comes in while there is no process', async (t) => {
  const plan = plans({ races: true, raw: true, drifts: false })
  await fc.assert(
    fc.asyncProperty(plan, dice, async (plan, numbers) => {
      const trial = { world: aWorld(delayOf), seen: noSeen(), plan, roll: dieOf(numbers) }
      assert.equal((await withEvictions(trial, false)).how, 'returned')
    }),
    { numRuns: amount({ test: 150, storm: 300 }), ...repeatable(t) },
  )
})

test('after a crash nothing is bought again that was there or on its way', async (t) => {
  const plan = plans({ races: false, raw: true, drifts: false })
  await fc.assert(
    fc.asyncProperty(plan, dice, async (plan, numbers) => {
      const calm = { world: aWorld(delayOf), seen: noSeen(), plan, roll: () => 0 }
      const expected = await withEvictions(calm, false)
      const trial = { world: aWorld(delayOf), seen: noSeen(), plan, roll: dieOf(numbers) }
      assert.deepEqual(await withEvictions(trial, true), expected)
      assert.deepEqual(bought(trial), bought(calm))
    }),
    { numRuns: amount({ test: 50, storm: 100 }), ...repeatable(t) },
  )
})

/** What failed is tried again. */
function bought({ world, seen }: Trial): unknown {
  const succeeded = (counts: Map<string, number>) => [...counts].filter(([key]) => !/ fails | 0 after /.test(key))
  return [new Map(succeeded(world.begun)), new Map(succeeded(seen.executed))]
}
