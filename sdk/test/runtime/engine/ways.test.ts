// Programs that catch failures and go another way, lost and thrown out at any time: what was done on one way is not
// left behind for another.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Program, type Tools } from './process.ts'
import { answered, aWorld, failed, type World } from './world.ts'

/** A program as data. What fails does so at its first tries. */
type Plan =
  | { do: 'step' | 'slow' | 'child' | 'input'; failures: number }
  | { do: 'sleep'; ms: number }
  /** A step that does all of this, and then something of its own. */
  | { do: 'within'; failures: number; body: Plan }
  | { do: 'seq' | 'all' | 'settled' | 'any' | 'race'; parts: Plan[] }
  /** rethrows: with the error, once that is handled. */
  | { do: 'try'; body: Plan; handler: Plan; rethrows: boolean }

const failures = fc.constantFrom(0, 0, 1, 1, 2)

/** `goesOn`: who has handled a failure goes on, and what a step calls inside is a call alone. */
function plans(more: readonly ('all' | 'settled' | 'any' | 'race')[], goesOn = false): fc.Arbitrary<Plan> {
  const { plan } = fc.letrec<{ plan: Plan }>((tie) => {
    const parts = fc.array(tie('plan'), { minLength: 2, maxLength: 3 })
    const handled = fc.record({
      do: fc.constant('try' as const),
      body: tie('plan'),
      handler: tie('plan'),
      rethrows: goesOn ? fc.constant(false) : fc.boolean(),
    })
    const call = fc.record({
      do: fc.constantFrom('step' as const, 'slow' as const, 'child' as const, 'input' as const),
      failures,
    })
    return {
      plan: fc.oneof(
        { depthSize: 'small', maxDepth: 5 },
        call,
        fc.record({ do: fc.constant('sleep' as const), ms: fc.constantFrom(20, 2_000) }),
        fc.record({ do: fc.constant('seq' as const), parts }),
        handled,
        handled,
        fc.record({ do: fc.constant('within' as const), failures, body: goesOn ? call : tie('plan') }),
        ...more.map((what) => fc.record({ do: fc.constant(what), parts })),
      ),
    }
  })
  return plan
}

const dice = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 })

/** What programs do outside, and what each attempt has asked for. */
class Diary {
  /** All that was ever begun, whatever came of it. */
  readonly begun = new Set<string>()
  readonly bought = new Map<string, number>()
  /** Of this attempt. */
  readonly called = new Set<string>()
  /** Steps whose functions this attempt has executed. */
  readonly executed = new Set<string>()
  readonly #tries = new Map<string, number>()

  nextAttempt(): void {
    this.called.clear()
    this.executed.clear()
  }

  triesOf(name: string): number {
    return this.#tries.get(name) ?? 0
  }

  /** `failures`: so often. */
  buy(name: string, failures: number): string {
    const count = (this.#tries.get(name) ?? 0) + 1
    this.#tries.set(name, count)
    if (count <= failures) throw new Error(`no ${name}`)
    this.bought.set(name, (this.bought.get(name) ?? 0) + 1)
    return name
  }

  /** What was done off the way of the last attempt. A step that has its result covers what is inside. */
  leftBehind(all: Iterable<string> = this.begun): string[] {
    return [...all].filter((name) => !this.#isOnTheWay(name))
  }

  #isOnTheWay(name: string): boolean {
    if (this.called.has(name)) return true
    const outer = name.slice(0, name.lastIndexOf('/'))
    return outer !== '' && (this.called.has(outer) ? !this.executed.has(outer) : this.#isOnTheWay(outer))
  }
}

interface Setting {
  calls: Calls
  tools: Tools
  diary: Diary
  /** Of the steps around. */
  within: string
  /** Where in the plan it is: names are unique. */
  path: string
}

async function follow(plan: Plan, at: Setting): Promise<unknown> {
  const part = (inner: Plan, name: string | number) => follow(inner, { ...at, path: `${at.path}.${name}` })
  switch (plan.do) {
    case 'seq': {
      const results: unknown[] = []
      for (const [index, inner] of plan.parts.entries()) results.push(await part(inner, index))
      return results
    }
    case 'all':
      return await Promise.all(plan.parts.map(part))
    case 'settled':
      return (await Promise.allSettled(plan.parts.map(part))).map(({ status }) => status)
    case 'any':
      return await Promise.any(plan.parts.map(part))
    case 'race':
      return await Promise.race(plan.parts.map(part))
    case 'try':
      try {
        return await part(plan.body, 'try')
      } catch (error) {
        const handled = await part(plan.handler, 'catch')
        if (plan.rethrows) throw error
        return handled
      }
    default:
      return await make(plan, at)
  }
}

type Call = Exclude<Plan, { parts: Plan[] } | { handler: Plan }>

async function make(plan: Call, at: Setting): Promise<unknown> {
  const { calls, tools, diary } = at
  if (plan.do === 'sleep') return await calls.sleep(plan.ms)
  const name = `${at.within}/${at.path}${plan.do}`
  diary.called.add(name)
  if (plan.do === 'child') return await calls.call(name, plan.failures)
  if (plan.do === 'input') return await calls.ask(name, { failures: plan.failures })
  return await calls.step(name, async () => {
    diary.begun.add(name)
    diary.executed.add(name)
    if (plan.do === 'slow') await tools.raw(3)
    if (plan.do === 'within') await follow(plan.body, { ...at, within: name, path: '' })
    return diary.buy(name, plan.failures)
  })
}

interface Trial {
  diary: Diary
  world: World
  program: Program
  roll: (sides: number) => number
  most: { crashes: number; evictions: number }
}

const delayOf = ({ n, kind }: JournalRecord) => 1 + ((n * 7919 + kind.length * 104_729) % 50)

function aTrial(plan: Plan, numbers: number[]): Trial {
  const diary = new Diary()
  const world = aWorld(delayOf, ({ kind, name, args }) => {
    if (kind === 'sleep') return answered(null)
    const { input, failures = input } = JSON.parse(args) as { input: number; failures?: number }
    try {
      return answered(diary.buy(name, failures))
    } catch (error) {
      return failed((error as Error).message)
    }
  })
  const apply = world.apply.bind(world)
  world.apply = (op) => {
    if (op.op === 'open' && (op.ask.for === 'child' || op.ask.for === 'input')) diary.begun.add(op.entry.name)
    apply(op)
  }
  let rolled = 0
  const roll = (sides: number) => (numbers[rolled++ % numbers.length] ?? 0) % sides
  const program: Program = async (tools) =>
    await follow(plan, { calls: callsOn(tools), tools, diary, within: '', path: '' })
  return { diary, world, program, roll, most: { crashes: 5, evictions: 10 } }
}

/** One attempt, over its evictions. */
async function attempted({ world, program, diary, roll, most }: Trial): Promise<End> {
  diary.nextAttempt()
  for (let replay = false; ; replay = true) {
    const evicts = () => most.evictions-- > 0 && roll(3) > 0
    const crashes = () => most.crashes > 0 && roll(6) === 0 && most.crashes-- > 0
    const end = await execute({ program, world, replay, evicts, crashes, hurries: () => roll(4) === 0 })
    for (let left = (end.how === 'evicted' ? 1 : 0) + roll(3); left > 0 && world.nextAt() < Infinity; left--)
      world.completeNext()
    if (end.how !== 'evicted') return end
  }
}

function assertBoughtOnce({ diary }: Trial): void {
  for (const [name, count] of diary.bought) assert.equal(count, 1, `${name} is bought ${count} times`)
}

/** Lost at any time; an error that the program throws is its end. */
async function staysOnItsWay(plan: Plan, numbers: number[]): Promise<void> {
  const trial = aTrial(plan, numbers)
  for (;;) {
    const end = await attempted(trial)
    assertBoughtOnce(trial)
    if (end.how === 'crashed') {
      trial.world.attempt += 1
      continue
    }
    assert.ok(end.how === 'returned' || end.how === 'threw', JSON.stringify(end))
    return assert.deepEqual(trial.diary.leftBehind(), [])
  }
}

test('an attempt that follows lost ones goes the way on which they have done something', async (t) => {
  await fc.assert(fc.asyncProperty(plans([]), dice, staysOnItsWay), {
    numRuns: amount({ test: 150, storm: 1_000 }),
    ...repeatable(t),
  })
})

test('so it does where branches go on side by side', async (t) => {
  await fc.assert(fc.asyncProperty(plans(['settled']), dice, staysOnItsWay), {
    numRuns: amount({ test: 150, storm: 1_000 }),
    ...repeatable(t),
  })
})

/** Lost at any time, and tried again whenever it throws: by a failure that nothing handles. */
async function staysOnItsWayToItsEnd(plan: Plan, numbers: number[]): Promise<void> {
  const trial = aTrial(plan, numbers)
  for (let throws = 0; ;) {
    const end = await attempted(trial)
    assertBoughtOnce(trial)
    // What has failed again and again may be left for what had failed before it.
    if (end.how === 'returned') return assert.deepEqual(trial.diary.leftBehind(trial.diary.bought.keys()), [])
    if (end.how === 'crashed') {
      trial.world.attempt += 1
      continue
    }
    assert.ok(end.how === 'threw' && throws++ < 50, JSON.stringify(end))
    trial.world.threw()
  }
}

test('so does one that follows a throw, where failures led to it that nothing had handled', async (t) => {
  await fc.assert(fc.asyncProperty(plans(['settled'], true), dice, staysOnItsWayToItsEnd), {
    numRuns: amount({ test: 150, storm: 1_000 }),
    ...repeatable(t),
  })
})

/** Lost at any time, and tried again whenever it throws. */
async function triesAgainWhatItThrew(plan: Plan, numbers: number[]): Promise<void> {
  const trial = aTrial(plan, numbers)
  const { world, diary } = trial
  /** How often that had been tried by which an attempt threw, and by how many it has been thrown since. */
  const thrown = new Map<string, { tries: number; times: number }>()
  for (;;) {
    const end = await attempted(trial)
    assertBoughtOnce(trial)
    if (end.how === 'returned') return
    if (end.how === 'crashed') {
      world.attempt += 1
      continue
    }
    assert.ok(end.how === 'threw', JSON.stringify(end))
    const cause = (end.error as Error).message.slice('no '.length)
    const tries = diary.triesOf(cause)
    const before = thrown.get(cause)
    const times = before?.tries === tries ? before.times + 1 : 1
    // Once more, where an attempt before had got further.
    assert.ok(times <= 2, `${cause} was tried ${tries} times, and is thrown again`)
    thrown.set(cause, { tries, times })
    world.threw()
  }
}

for (const [what, more] of [
  ['what failed', []],
  ['what failed beside others', ['all', 'settled', 'race']],
] as const) {
  test(`an attempt that follows a throw tries again ${what}, whatever lost ones had made of it`, async (t) => {
    await fc.assert(fc.asyncProperty(plans(more), dice, triesAgainWhatItThrew), {
      numRuns: amount({ test: 100, storm: 1_000 }),
      ...repeatable(t),
    })
  })
}
