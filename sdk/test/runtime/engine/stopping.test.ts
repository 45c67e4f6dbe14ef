// A run that is to end, at any moment: nothing is done twice, and what is over stays as it was.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { lostOnce, soonest, until, type Body } from './bodies.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Tools } from './process.ts'
import { plans, programOf, type Plan, type PlanOptions, type Seen } from './programs.ts'
import { aWorld, type World } from './world.ts'

const MOST_ATTEMPTS = 4
const MOST_EVICTIONS = 10
/** Longer than any of these programs takes until it stands where it stood. */
const ALL_THE_TIME = 600_000

/** Nothing of chance: the same entry takes as long in each run. */
const delayOf = ({ n, kind }: JournalRecord) => 1 + ((n * 7919 + kind.length * 104_729) % 50)

/** A die that shows the given numbers in turn. */
function dieOf(numbers: number[]) {
  let at = 0
  return (sides: number) => (numbers[at++ % numbers.length] ?? 0) % sides
}

interface Moment {
  /** In this process, before this of its events. */
  process: number
  event: number
}

interface Trial {
  world: World
  seen: Seen
  plan: Plan
  roll: (sides: number) => number
  mayCrash: boolean
  stop: Moment & { graceMs: number }
  handover: Moment & { isNoticed: boolean }
}

interface Ended {
  end: End
  /** What the last process had seen when it was given up or left; of one that was lost, what it has told by then. */
  before: Seen['branches']
  isReplay: boolean
  isStopped: boolean
}

async function untilItsEnd(trial: Trial): Promise<Ended> {
  const { world, seen, plan, roll, mayCrash, stop, handover } = trial
  const program = programOf(plan, seen)
  const evicted = { times: 0, replay: false }
  let before: Seen['branches'] = new Map()
  for (let at = 0; ; at++) {
    let recorded: Seen['branches'] = new Map()
    let isStopped = false
    const end = await execute({
      program,
      world,
      replay: evicted.replay,
      onSent: () => void (recorded = structuredClone(seen.branches)),
      repeats: () => roll(2) === 0,
      evicts: () => !isStopped && evicted.times < MOST_EVICTIONS && roll(3) > 0,
      crashes: () => !isStopped && mayCrash && world.attempt < MOST_ATTEMPTS && roll(10) === 0,
      handsOver: isAt(handover, at, () => handover),
      stops: isAt(stop, at, () => {
        isStopped = true
        return stop.graceMs
      }),
    })
    const { replay } = evicted
    evicted.replay = end.how === 'evicted'
    if (evicted.replay) evicted.times += 1
    else if (end.how === 'crashed' || end.how === 'left') world.attempt += 1
    else return { end, before, isReplay: replay, isStopped }
    before = end.how === 'crashed' ? recorded : structuredClone(seen.branches)
    for (let left = (evicted.replay ? 1 : 0) + roll(3); left > 0 && world.nextAt() < Infinity; left--)
      world.completeNext()
  }
}

function isAt<T>({ process, event }: Moment, at: number, then: () => T): () => T | undefined {
  let events = 0
  return () => (at === process && events++ === event ? then() : undefined)
}

/** Steps that fail are executed again by a further attempt, and equal ones may change places there. */
function assertOnce({ world, seen }: Trial): void {
  if (world.attempt === 1)
    return assert.deepEqual(
      [...seen.executed].filter(([, count]) => count > 1),
      [],
    )
  const equal = Map.groupBy(seen.steps ?? [], (key) => key.split(' ')[1])
  equal.delete('0')
  for (const [id, keys] of equal) {
    const count = keys.reduce((sum, key) => sum + (seen.executed.get(key) ?? 0), 0)
    assert.ok(count <= keys.length, `step ${id}: ${count} for ${keys.join()}`)
  }
}

/** Each branch comes to what it had come to. What lies within a step that has its result is not gone through again. */
function assertGoesOn(now: Seen['branches'], before: Seen['branches']): void {
  for (const [branch, values] of before) {
    const got = now.get(branch)
    if (got || !branch.includes('<')) assert.deepEqual(got?.slice(0, values.length) ?? [], values, `branch ${branch}`)
  }
}

/** A further attempt tries again what has failed, and may go another way with that. */
const fails = (plan: Plan) => /"do":"step","id":0|"do":"(input|child|drifts)","id":1/.test(JSON.stringify(plan))

const dice = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 })
const moment = { process: fc.nat(3), event: fc.nat(14) }
const stops = fc.record({ ...moment, graceMs: fc.constantFrom(0, 2, 20, 60, ALL_THE_TIME) })
const handovers = fc.record({ process: fc.nat(7), event: fc.nat(14), isNoticed: fc.boolean() })

const KINDS: [what: string, PlanOptions, { mayCrash: boolean; test: number }][] = [
  ['a program', { races: false, raw: true, drifts: false }, { mayCrash: false, test: 60 }],
  ['a program with races', { races: true, raw: true, drifts: false }, { mayCrash: false, test: 40 }],
  ['a program whose calls drift', { races: false, raw: false, drifts: true }, { mayCrash: false, test: 30 }],
  ['a further attempt', { races: false, raw: true, drifts: false }, { mayCrash: true, test: 20 }],
  [
    'a further attempt of a program with races',
    { races: true, raw: false, drifts: false },
    { mayCrash: true, test: 20 },
  ],
]

for (const [what, options, { mayCrash, test: runs }] of KINDS)
  test(`${what} that is stopped comes to its end, and keeps what is recorded`, async (t) => {
    await fc.assert(
      fc.asyncProperty(plans(options), dice, stops, handovers, async (plan, numbers, stop, handover) => {
        const seen: Seen = { branches: new Map(), executed: new Map(), steps: new Set() }
        const trial = { world: aWorld(delayOf), seen, plan, roll: dieOf(numbers), mayCrash, stop, handover }
        const { end, before, isReplay, isStopped } = await untilItsEnd(trial)
        assert.equal(end.how, 'returned')
        assertOnce(trial)
        const isLed = isReplay && stop.graceMs === ALL_THE_TIME
        // Where it is not, a drifting call may be taken for another one.
        const isSure = !options.drifts && (trial.world.attempt === 1 || !fails(plan))
        if (isStopped && (isLed || isSure)) assertGoesOn(seen.branches, before)
      }),
      { numRuns: amount({ test: runs, storm: runs * 4 }), ...repeatable(t) },
    )
  })

/** The process is stopped before this of its events, with no time left. */
function stopped(world: World, body: Body, event: number, replay: boolean): Promise<End> {
  const stops = isAt({ process: 0, event }, 0, () => 0)
  return execute({ program: (tools) => body(callsOn(tools), tools), world, replay, stops })
}

/** Until it is lost, when it has begun the last of its work. */
async function lost(world: World, body: Body): Promise<void> {
  let turns = 0
  const program = (tools: Tools) => body(callsOn(tools), tools)
  const end = await execute({ program, world, replay: false, crashes: () => turns++ > 30 })
  assert.equal(end.how, 'crashed')
  world.attempt += 1
}

/** The sleep that is called first is over last. */
const raceOf =
  (done: string[]): Body =>
  async ({ step, sleep, ask }, { raw }) => {
    try {
      await Promise.race([sleep(3_600_000), ask('go on?')])
    } catch (error) {
      await step('undo', () => void done.push('undone'))
      throw error
    }
    await step('ship', () => void done.push('shipped'))
    for (;;) await raw(1)
  }

test('a race that is over keeps its winner in a further attempt that is stopped', async () => {
  const done: string[] = []
  const world = aWorld(({ kind }) => (kind === 'sleep' ? Infinity : 1))
  await lost(world, raceOf(done))
  let turns = 0
  const body: Body = (calls, tools) =>
    raceOf(done)(calls, { ...tools, raw: () => (turns++ > 3 ? Promise.reject(new Error('over')) : tools.raw(1)) })
  assert.equal((await stopped(world, body, 0, false)).how, 'threw')
  assert.deepEqual(done, ['shipped'])
})

test('a wait that an attempt has got past does not reject in one that the next was lost before', async () => {
  const world = soonest()
  const body: Body = async ({ sleep, step }, { raw }) => {
    await sleep(60_000).catch(() => assert.fail('it is over'))
    await step('charge', () => {})
    for (let turns = 0; turns < 40; turns++) await raw(1)
    return world.attempt
  }
  await lost(world, body)
  const isAdopted = () => [...world.records.values()].some(({ attempt }) => attempt === 2)
  const program = (tools: Tools) => body(callsOn(tools), tools)
  assert.equal((await execute({ program, world, replay: false, crashes: isAdopted })).how, 'crashed')
  world.attempt += 1
  assert.deepEqual(await stopped(world, body, 0, false), { how: 'returned', value: 3 })
})

for (const [what, ms] of [
  ['a wait', 60_000],
  ['a sleep below a second', 500],
] as const)
  for (const [then, goesOn] of [
    ['the result of a step', ({ step }) => step('charge', () => {})],
    ['a step that is begun', ({ step, ask }) => step('charge', () => ask('go on?'))],
    ['a call', ({ call }) => call('charge', {})],
  ] satisfies [string, (calls: Calls) => Promise<unknown>][])
    test(`${what} that is over does not reject in a further attempt that knows of what followed: ${then}`, async () => {
      const world = soonest()
      let isOver = false
      const body: Body = async (calls) => {
        await calls.sleep(ms).catch(() => assert.fail('it is over'))
        isOver = true
        return await goesOn(calls).catch(String)
      }
      const isRecorded = () => isOver && [...world.records.values()].some(({ name }) => name === 'charge')
      assert.equal((await lostOnce(world, isRecorded, body)).how, 'crashed')
      world.attempt += 1
      assert.equal((await stopped(world, body, 0, false)).how, 'returned')
    })

for (const [what, isLeft] of [
  ['throws', false],
  ['leaves for the stop of its agent', true],
] as const)
  test(`a wait that is over does not reject behind an attempt that ${what}`, async () => {
    const world = soonest()
    const body: Body = async ({ sleep }) => {
      await sleep(60_000).catch(() => assert.fail('it is over'))
      if (world.attempt === 1) throw new Error('no')
    }
    const handsOver = isAt({ process: 0, event: 0 }, isLeft ? 0 : 1, () => ({ isNoticed: false }))
    const end = await execute({ program: (tools) => body(callsOn(tools), tools), world, replay: false, handsOver })
    assert.equal(end.how, isLeft ? 'left' : 'threw')
    if (isLeft) world.attempt += 1
    else world.threw()
    assert.equal((await stopped(world, body, 0, false)).how, 'returned')
  })

test('words of their own are none where the journal tells what was given anyway', async () => {
  const world = soonest()
  const body: Body = async ({ step, sleep }, { raw }) => {
    for (let i = 0; i < 2; i++) {
      await step('before', () => {})
      await sleep(60_000)
      await step('behind', () => {})
    }
    for (;;) await raw(1)
  }
  await lost(world, body)
  const sent: string[] = []
  const apply = world.apply.bind(world)
  world.apply = (op) => (sent.push(op.op), apply(op))
  await lost(world, body)
  assert.deepEqual(
    sent,
    Array.from({ length: 6 }, () => 'adopt'),
  )
})

test('a step that a replay had begun is not executed again by the stop', async () => {
  const world = soonest()
  let times = 0
  const body: Body = async ({ step, ask }) => {
    void step('watches', () => {
      times += 1
      return new Promise(() => {})
    })
    return await ask('go on?').catch(String)
  }
  assert.equal((await until(1, world, body)).how, 'evicted')
  let parks = 0
  const end = await execute({
    program: (tools) => body(callsOn(tools), tools),
    world,
    replay: true,
    evicts: () => ++parks < 0,
    stops: () => (parks === 1 && parks++ ? 0 : undefined),
  })
  assert.deepEqual([end, times], [{ how: 'returned', value: 'Error: stopped' }, 2])
})
