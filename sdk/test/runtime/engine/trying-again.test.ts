// Programs that try again what has failed, lost, evicted and thrown out at any time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Program } from './process.ts'
import { answered, aWorld, failed, type World } from './world.ts'

/** What a program does for one item after another; all items of a branch have the same names. */
interface Item {
  /** outer: a step that calls a child. reminds: a question that is equal for all items. */
  kind: 'step' | 'outer' | 'child' | 'reminds'
  /** How often it fails first. */
  failures: number
  /** Waits before it tries again. */
  pauses: boolean
}

const items = fc.array(
  fc.record({
    kind: fc.constantFrom('step' as const, 'outer' as const, 'child' as const, 'reminds' as const),
    failures: fc.nat({ max: 3 }),
    pauses: fc.boolean(),
  }),
  { minLength: 1, maxLength: 5 },
)
const dice = fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 30 })

const MOST_ATTEMPTS = 6
const MOST_EVICTIONS = 10

/** Fails each item as often as it says, and knows how often each was bought. */
class Shop {
  readonly bought = new Map<string, number>()
  readonly #branches: readonly Item[][]
  readonly #asked = new Map<string, number>()

  constructor(branches: readonly Item[][]) {
    this.#branches = branches
  }

  /** Of a step. */
  buy(branch: number, at: number): string {
    const key = `${branch}.${at}`
    const count = (this.#asked.get(key) ?? 0) + 1
    this.#asked.set(key, count)
    if (count <= this.#branches[branch]![at]!.failures) throw new Error(`no ${key}`)
    this.bought.set(key, (this.bought.get(key) ?? 0) + 1)
    return `bought ${key}`
  }

  readonly answerOf = ({ kind, name, args }: JournalRecord, count: number) => {
    if (kind === 'sleep' || name.startsWith('inner')) return answered(null)
    // Of the question nobody knows for which item it is asked.
    if (kind === 'input') return count % 3 === 1 ? failed('nobody is there') : answered(`answer ${count}`)
    const { branch, at } = (JSON.parse(args) as { input: { branch: number; at: number } }).input
    if (count <= this.#branches[branch]![at]!.failures) return failed(`no ${branch}.${at}`)
    return answered(`bought ${branch}.${at}`)
  }
}

interface Trial {
  branches: readonly Item[][]
  shop: Shop
  world: World
  /** Whether the program throws here. In each process of an attempt it is the same. */
  throwsAt(point: number): boolean
}

function programOf(trial: Trial): Program {
  return async (tools) =>
    await Promise.all(
      trial.branches.map(async (own, branch) => {
        const results: unknown[] = []
        for (const [at, item] of own.entries())
          results.push(await insisting(trial, callsOn(tools), { ...item, branch, at }))
        return results
      }),
    )
}

type Placed = Item & { branch: number; at: number }

async function insisting(trial: Trial, calls: Calls, item: Placed): Promise<unknown> {
  for (let tries = 0; ; tries++) {
    if (trial.throwsAt(item.at * 10 + tries)) throw new Error('not now')
    try {
      return await tryOnce(trial, calls, item)
    } catch {
      if (item.pauses) await calls.sleep(2_000)
    }
  }
}

function tryOnce({ shop }: Trial, calls: Calls, { kind, branch, at }: Placed): Promise<unknown> {
  const buy = () => shop.buy(branch, at)
  if (kind === 'step') return calls.step(`pay ${branch}`, buy)
  if (kind === 'child') return calls.call(`ship ${branch}`, { branch, at })
  if (kind === 'reminds') return calls.ask(`sure ${branch}?`)
  return calls.step(`process ${branch}`, async () => {
    await calls.call(`inner ${branch}`, {})
    return buy()
  })
}

const delayOf = ({ n, kind }: JournalRecord) => 1 + ((n * 7919 + kind.length * 104_729) % 50)

function aTrial(branches: readonly Item[][], throwsAt: (world: World, point: number) => boolean): Trial {
  const shop = new Shop(branches)
  const world = aWorld(delayOf, shop.answerOf)
  return { branches, shop, world, throwsAt: (point) => throwsAt(world, point) }
}

async function toItsEnd(trial: Trial, numbers: number[]): Promise<End> {
  const { world } = trial
  const program = programOf(trial)
  let rolled = 0
  const roll = (sides: number) => (numbers[rolled++ % numbers.length] ?? 0) % sides
  let evictions = 0
  for (let replay = false; ;) {
    const evicts = () => evictions < MOST_EVICTIONS && roll(3) > 0
    const crashes = () => world.attempt < MOST_ATTEMPTS && roll(10) === 0
    const hurries = () => roll(4) === 0
    const end = await execute({ program, world, replay, evicts, crashes, hurries })
    replay = end.how === 'evicted'
    if (end.how === 'evicted') evictions += 1
    else if (end.how === 'crashed') world.attempt += 1
    else if (end.how === 'threw' && String(end.error) === 'Error: not now') world.threw()
    else return end
    for (let left = (replay ? 1 : 0) + roll(3); left > 0 && world.nextAt() < Infinity; left--) world.completeNext()
  }
}

/** Without what a step calls inside: tried again, it calls that again, and not where it is given that it has failed. */
const begunOf = ({ world }: Trial) => new Map([...world.begun].filter(([key]) => !/ sleep | child inner /.test(key)))

async function isBoughtOnce(branches: readonly Item[][], numbers: number[], mayThrow: boolean): Promise<void> {
  const calm = aTrial(branches, () => false)
  const expected = await execute({ program: programOf(calm), world: calm.world, replay: false })
  assert.equal(expected.how, 'returned')
  const trial = aTrial(branches, ({ attempt }, point) => {
    if (!mayThrow || attempt >= MOST_ATTEMPTS) return false
    return (numbers[(attempt * 31 + point) % numbers.length] ?? 0) % 5 === 0
  })
  assert.deepEqual(await toItsEnd(trial, numbers), expected)
  assert.deepEqual(trial.shop.bought, calm.shop.bought)
  assert.deepEqual(begunOf(trial), begunOf(calm))
}

test('after a crash or a throw each item has its own result, and nothing that succeeded is bought again', async (t) => {
  const runs = { numRuns: amount({ test: 60, storm: 300 }), ...repeatable(t) }
  await fc.assert(
    fc.asyncProperty(items, dice, (own, numbers) => isBoughtOnce([own], numbers, true)),
    runs,
  )
})

test('so it is in branches side by side, each with names of its own', async (t) => {
  const runs = { numRuns: amount({ test: 15, storm: 60 }), ...repeatable(t) }
  const branches = fc.array(items, { minLength: 2, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(branches, dice, (all, numbers) => isBoughtOnce(all, numbers, false)),
    runs,
  )
})
