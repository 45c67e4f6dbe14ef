// What the attempt after a crash, or after an error that is tried again, gets of what had failed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from '../../../runtime/engine/call.ts'
import { createFormer } from '../../../runtime/engine/former.ts'
import { type Body, lostOnce, resume, soonest, until } from './bodies.ts'
import { answered, aWorld, failed, type World } from './world.ts'

/** A provider that refuses each of these orders as often, and remembers whom it was paid for. */
function aProvider(refusals: Record<string, number> = {}) {
  const left = new Map(Object.entries(refusals))
  const paid: string[] = []
  const pay = (order: string) => {
    const refuses = left.get(order) ?? 0
    left.set(order, refuses - 1)
    if (refuses > 0) throw new Error(`refused ${order}`)
    paid.push(order)
    return `${order} paid ${paid.length}`
  }
  return { paid, pay }
}

async function insisting<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch {
      // Again.
    }
  }
}

const isDone = (world: World, n: number) => () => world.records.get(n)?.state === 'done'

test('what succeeded at its second try is bought once, and each order has its own receipt', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => {
    const receipts: unknown[] = []
    for (const order of ['A', 'B', 'C']) receipts.push(await insisting(() => step('pay', () => pay(order))))
    return receipts
  }
  const world = soonest()
  assert.equal((await lostOnce(world, isDone(world, 3), body)).how, 'crashed')
  world.attempt = 2
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A paid 1', 'B paid 2', 'C paid 3'] })
  assert.deepEqual(paid, ['A', 'B', 'C'])
})

for (const kind of ['call', 'ask'] as const) {
  test(`a ${kind} that succeeds at its second try is taken over, at whichever moment its process is lost`, async () => {
    for (let lostAt = 1; lostAt <= 12; lostAt++) {
      const world = aWorld(
        ({ n }) => n,
        (_, count) => (count === 1 ? failed('away') : answered(`answer ${count}`)),
      )
      const body: Body = async (calls, { raw }) => {
        const answer = await insisting(() => (kind === 'call' ? calls.call('ship', 7) : calls.ask('ship?')))
        await raw(5)
        return answer
      }
      let events = 0
      const lost = await lostOnce(world, () => ++events === lostAt, body)
      if (lost.how !== 'crashed') continue
      world.attempt = 2
      assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'answer 2' })
      assert.deepEqual([...world.begun.values()], [2], `lost at event ${lostAt}`)
    }
  })
}

test('a failure is given to attempt after attempt, however soon each is lost, and to their replays', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body: Body = async ({ step, sleep }) => {
    const receipts: unknown[] = []
    for (const order of ['A', 'B']) receipts.push(await insisting(() => step('pay', () => pay(order))))
    await sleep(60_000)
    return [...receipts, await step('pay', () => pay('C'))]
  }
  const world = soonest()
  assert.equal((await lostOnce(world, isDone(world, 3), body)).how, 'crashed')
  // One is lost before it is given the failure, one after that.
  world.attempt = 2
  assert.equal((await lostOnce(world, () => world.records.get(1)?.attempt === 2, body)).how, 'crashed')
  assert.deepEqual([world.records.get(1)?.delivered, world.records.get(1)?.former], [null, [1, 1, 1]])
  world.attempt = 3
  const isGiven = () => world.records.get(1)?.attempt === 3 && world.records.get(1)?.delivered === 1
  assert.equal((await lostOnce(world, isGiven, body)).how, 'crashed')
  world.attempt = 4
  assert.equal((await until(1, world, body)).how, 'evicted')
  world.completeNext()
  assert.deepEqual(await resume(world, body), { how: 'returned', value: ['A paid 1', 'B paid 2', 'C paid 3'] })
  assert.deepEqual(paid, ['A', 'B', 'C'])
})

test('a failure is told before the next call, however soon the process is lost', async () => {
  const { pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => await insisting(() => step('pay', () => pay('A')))
  const world = soonest()
  assert.equal((await lostOnce(world, () => world.records.has(2), body)).how, 'crashed')
  const { state, delivered, after } = world.records.get(1)!
  assert.deepEqual([state, delivered, after], ['failed', 1, 1])
})

test('equal calls side by side: after a throw the one that failed is tried again, and no other', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => {
    const all = ['A', 'B', 'C'].map((order) => step('pay', () => pay(order)))
    const ends = await Promise.allSettled(all)
    if (world.attempt === 1) throw new Error('not now')
    return ends.map((end) => (end.status === 'fulfilled' ? end.value : 'refused'))
  }
  const world = soonest()
  assert.equal((await until(0, world, body)).how, 'threw')
  world.threw()
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A paid 3', 'B paid 1', 'C paid 2'] })
  assert.deepEqual(paid, ['B', 'C', 'A'])
})

/** So many at a time, and the next begins in the turn in which one has failed. */
function limited(most: number) {
  let active = 0
  const waiting: (() => void)[] = []
  return async <T>(act: () => Promise<T>): Promise<T> => {
    if (active >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    active += 1
    try {
      return await act()
    } finally {
      active -= 1
      waiting.shift()?.()
    }
  }
}

/** A, B and C, two at a time, in steps of one name. */
const threeInPool =
  (pay: (order: string) => string): Body =>
  async ({ step, call }) => {
    const limit = limited(2)
    const process = (order: string) => step('process', async () => [order, await call('check', order), pay(order)])
    const all = ['A', 'B', 'C'].map((order) => limit(() => process(order)))
    return (await Promise.all(all)).map((value) => (value as string[])[0])
  }

test('the failure that was given last before a throw is tried again, though the same was called by then', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body = threeInPool(pay)
  const checksOfA = ({ args }: { args: string }) => (args.includes('A') ? 1 : 1000)
  const world = aWorld(checksOfA)
  const threw = await until(0, world, body)
  assert.ok(threw.how === 'threw' && String(threw.error).includes('refused A'), JSON.stringify(threw))
  const steps = [...world.records.values()].filter(({ kind }) => kind === 'step')
  assert.deepEqual(
    steps.map(({ occurrence, state }) => [occurrence, state]),
    [
      [1, 'failed'],
      [2, 'open'],
      [3, 'open'],
    ],
  )
  world.threw()
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A', 'B', 'C'] })
  assert.deepEqual(paid.toSorted(), ['A', 'B', 'C'])
})

test('a failure that comes again and again is tried again after each throw', async () => {
  const { paid, pay } = aProvider({ A: 3 })
  const body = threeInPool(pay)
  const world = aWorld(({ args }) => (args.includes('A') ? 1 : 1000))
  for (let attempt = 1; attempt <= 3; attempt++) {
    assert.equal((await until(0, world, body)).how, 'threw')
    world.threw()
  }
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A', 'B', 'C'] })
  assert.deepEqual(paid.toSorted(), ['A', 'B', 'C'])
})

test('what was called behind a failure that is tried again goes to nobody else', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => {
    if (world.attempt > 1) return [await step('pay', () => pay('A')), await step('pay', () => pay('B'))]
    await step('pay', () => pay('A')).catch(() => void step('pay', () => pay('A')))
    // Until it is told what that has come to, and before it is given.
    for (let turns = 0; turns < 20; turns++) await Promise.resolve()
    throw new Error('something else')
  }
  const world = soonest()
  assert.equal((await until(0, world, body)).how, 'threw')
  assert.deepEqual([world.records.get(2)?.state, world.records.get(2)?.delivered], ['done', null])
  world.threw()
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A paid 2', 'B paid 3'] })
  assert.deepEqual(paid, ['A', 'A', 'B'])
})

test('an attempt that throws right after a failure that another had got past does not change that', async () => {
  const { paid, pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => {
    if (world.attempt === 2) return await step('pay', () => pay('A'))
    const receipts: unknown[] = []
    for (const order of ['A', 'B']) receipts.push(await insisting(() => step('pay', () => pay(order))))
    return receipts
  }
  const world = soonest()
  assert.equal((await lostOnce(world, isDone(world, 3), body)).how, 'crashed')
  world.attempt = 2
  assert.equal((await until(0, world, body)).how, 'threw')
  world.threw()
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: ['A paid 1', 'B paid 2'] })
  assert.deepEqual(paid, ['A', 'B'])
})

test('what was given last is told at the end of a program that was given a failure', async () => {
  const { pay } = aProvider({ A: 1 })
  const body: Body = async ({ step }) => {
    await insisting(() => step('pay', () => pay('A')))
    throw new Error('later')
  }
  const world = soonest()
  assert.equal((await until(0, world, body)).how, 'threw')
  assert.deepEqual(
    [...world.records.values()].map(({ delivered }) => delivered),
    [1, 2],
  )
})

test('a full journal of failures is looked through in no time', () => {
  const call = { parent: '', kind: 'step', name: 'pay', hash: '', args: '', site: '' } as const
  const journal = Array.from({ length: 25_000 }, (_, at): JournalRecord => {
    const [n, { state, result }] = [at + 1, at % 2 === 0 ? failed('no') : answered(at)]
    const given = { delivered: n, after: n, idle: false, former: null, completed: null }
    return { ...call, ...given, n, position: n, occurrence: n, attempt: 1, drifted: false, state, result }
  })
  // One that a throw has made to be tried again does not look through all others either.
  Object.assign(journal.at(-2)!, { delivered: null })
  const before = process.cpuUsage()
  const former = createFormer(journal)
  const taken = journal.filter(({ occurrence }) => former.take({ ...call, occurrence } as Call) !== undefined)
  const { user, system } = process.cpuUsage(before)
  assert.equal(taken.length, 24_998)
  assert.ok(user + system < 3_000_000, `${user + system} µs`)
})
