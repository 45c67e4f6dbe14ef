// What the next attempt is given of failures, by how the ones before have ended.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Call } from '../../../runtime/engine/call.ts'
import { createFormer } from '../../../runtime/engine/former.ts'
import { type Body, lostOnce, soonest, until } from './bodies.ts'
import type { Calls } from './calls.ts'
import type { World } from './world.ts'

/** Does things outside, and notes them. Each of these fails as often first. */
function aShop(refusals: Record<string, number>) {
  const left = new Map(Object.entries(refusals))
  const done: string[] = []
  const act = (what: string) => () => {
    const refuses = left.get(what) ?? 0
    left.set(what, refuses - 1)
    done.push(refuses > 0 ? `no ${what}` : what)
    if (refuses > 0) throw new Error(`no ${what}`)
    return what
  }
  return { done, act, doing: (step: Calls['step']) => (what: string) => step(what, act(what)) }
}

type Shop = ReturnType<typeof aShop>

/** Charges and ships, or tells the customer that it is declined. */
const order =
  (shop: Shop): Body =>
  async ({ step }, { raw }) => {
    const doing = shop.doing(step)
    try {
      await doing('charge')
      await doing('ship')
      return 'shipped'
    } catch {
      await step('release', async () => {
        shop.act('release')()
        await raw(5)
      })
      await doing('tell')
      await raw(5)
      return 'declined'
    }
  }

const tryLost = async (world: World, body: Body, lostAt: number) => {
  let events = 0
  return await lostOnce(world, () => ++events === lostAt, body)
}

test('an attempt that is lost when it has begun to handle a failure is not charged for the other way', async () => {
  let moments = 0
  for (let lostAt = 1; lostAt <= 40; lostAt++) {
    const shop = aShop({ charge: 1 })
    const world = soonest()
    const lost = await tryLost(world, order(shop), lostAt)
    if (lost.how !== 'crashed') continue
    moments += 1
    const isDeclined = shop.done.includes('release')
    world.attempt += 1
    const end = await until(0, world, order(shop))
    assert.deepEqual(end, { how: 'returned', value: isDeclined ? 'declined' : 'shipped' }, shop.done.join())
    assert.equal(shop.done.includes('ship'), !isDeclined, shop.done.join())
  }
  assert.ok(moments > 5)
})

test('steps behind a failure are known before they are executed', async () => {
  const shop = aShop({ charge: 1 })
  const world = soonest()
  const isReleasing = () => shop.done.includes('release')
  assert.equal((await lostOnce(world, isReleasing, order(shop))).how, 'crashed')
  assert.deepEqual(
    [...world.records.values()].map(({ name, state, delivered }) => [name, state, delivered]),
    [
      ['charge', 'failed', 1],
      ['release', 'open', null],
    ],
  )
  world.attempt = 2
  const isTelling = () => shop.done.includes('tell')
  assert.equal((await lostOnce(world, isTelling, order(shop))).how, 'crashed')
  world.attempt = 3
  assert.deepEqual(await until(0, world, order(shop)), { how: 'returned', value: 'declined' })
  assert.deepEqual(shop.done, ['no charge', 'release', 'release', 'tell'])
})

test('each step that follows from a failure is known by itself, whatever else is called at that moment', async () => {
  const shop = aShop({ charge: 1 })
  const body: Body = async ({ step }, { raw }) => {
    const { attempt } = world
    const failed = Promise.withResolvers<void>()
    const other = async () => {
      if (attempt === 1) await failed.promise
      return await shop.doing(step)('other')
    }
    const others = other()
    if (attempt > 1) await raw(50)
    try {
      return await shop.doing(step)('charge')
    } catch {
      failed.resolve()
      for (let turns = 0; turns < 5; turns++) await Promise.resolve()
      await step('release', async () => {
        shop.act('release')()
        await raw(5)
      })
      await others
      return 'declined'
    }
  }
  const world = soonest()
  const isReleasing = () => shop.done.includes('release')
  assert.equal((await lostOnce(world, isReleasing, body)).how, 'crashed')
  // What the first had called elsewhere is taken over by one that is lost before it comes to the failure.
  world.attempt = 2
  const hasTakenOver = () => [...world.records.values()].some((each) => each.name === 'other' && each.attempt === 2)
  assert.equal((await lostOnce(world, hasTakenOver, body)).how, 'crashed')
  world.attempt = 3
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'declined' })
  assert.deepEqual(shop.done, ['no charge', 'other', 'release', 'release'])
})

for (const pause of ['raw', 'sleep'] as const)
  test(`so is one that is called after a while, beside others that go on: ${pause}`, async () => {
    const shop = aShop({ charge: 1 })
    const body: Body = async ({ step, sleep }, { raw }) => {
      const { attempt } = world
      const others = async () => {
        await step('pick', async () => {
          if (attempt === 1) await raw(8)
        })
        await shop.doing(step)('pack')
        await raw(60_000)
      }
      void others()
      if (attempt === 2) await raw(50)
      try {
        return await shop.doing(step)('charge')
      } catch {
        await (pause === 'raw' ? raw(40) : sleep(40))
        await step('release', async () => {
          shop.act('release')()
          await raw(5)
        })
        return 'declined'
      }
    }
    const world = soonest()
    assert.equal((await lostOnce(world, () => shop.done.includes('release'), body)).how, 'crashed')
    world.attempt = 2
    const hasTakenOver = () => [...world.records.values()].some((each) => each.name === 'pack' && each.attempt === 2)
    assert.equal((await lostOnce(world, hasTakenOver, body)).how, 'crashed')
    world.attempt = 3
    assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'declined' })
    assert.deepEqual(shop.done, ['no charge', 'pack', 'release', 'release'])
  })

test('a failure behind which nothing was called is tried again', async () => {
  const shop = aShop({ charge: 1 })
  const body: Body = async ({ step }, { raw }) => {
    try {
      return await shop.doing(step)('charge')
    } catch {
      await raw(60_000)
      return 'declined'
    }
  }
  const world = soonest()
  const isGiven = () => world.records.get(1)?.delivered === 1
  assert.equal((await lostOnce(world, isGiven, body)).how, 'crashed')
  world.attempt = 2
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'charge' })
})

test('what a fallback has bought after a failure is asked for by the next attempt', async () => {
  const shop = aShop({ cheap: 1 })
  const body: Body = async ({ step }, { raw }) => {
    const doing = shop.doing(step)
    const answer = await doing('cheap').catch(() => doing('dear'))
    await raw(60_000)
    return answer
  }
  const world = soonest()
  assert.equal((await lostOnce(world, () => world.records.get(2)?.state === 'done', body)).how, 'crashed')
  world.attempt = 2
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'dear' })
  assert.deepEqual(shop.done, ['no cheap', 'dear'])
})

/** Tidies up, and throws what it has met. */
const saga =
  (shop: Shop, isNested: boolean): Body =>
  async ({ step }, { raw }) => {
    const doing = shop.doing(step)
    try {
      if (!isNested) return await doing('pay')
      return await step('process', () => step('outer', async () => [await doing('pay')]))
    } catch (error) {
      await step('tidy up', () => doing('tidy'))
      await raw(5)
      throw error
    }
  }

for (const isNested of [false, true]) {
  const what = isNested ? 'a step within steps' : 'a step'
  test(`the failure of ${what} that is thrown is tried again, though a lost attempt has tidied up`, async () => {
    for (const losses of [0, 1, 2]) {
      const shop = aShop({ pay: 2 })
      const world = soonest()
      for (let throws = 0; throws < 2; throws++) {
        // Once it has tidied up. An attempt that takes all of it over is lost then too.
        for (let left = losses; left > 0; left--) {
          const ofThis = () => [...world.records.values()].filter(({ attempt }) => attempt === world.attempt)
          const hasTidied = () => ofThis().some(({ name, delivered }) => name === 'tidy up' && delivered !== null)
          const hasMade = () => ofThis().some(({ name, state }) => name === 'tidy up' && state === 'done')
          const lost = await lostOnce(world, () => hasMade() || hasTidied(), saga(shop, isNested))
          assert.equal(lost.how, 'crashed')
          world.attempt += 1
        }
        const threw = await until(0, world, saga(shop, isNested))
        assert.ok(threw.how === 'threw' && String(threw.error) === 'Error: no pay', JSON.stringify(threw))
        assert.equal(shop.done.filter((each) => each === 'no pay').length, throws + 1)
        world.threw()
      }
      assert.equal((await until(0, world, saga(shop, isNested))).how, 'returned')
      assert.deepEqual(shop.done, ['no pay', 'tidy', 'no pay', 'pay'], `lost ${losses} times`)
    }
  })
}

test('a failure is kept once where an attempt throws before it has asked for what a lost one had bought', async () => {
  const run = async (throws: number) => {
    const shop = aShop({ charge: 1 })
    const world = soonest()
    const body: Body = async ({ step }, { raw }) => {
      const doing = shop.doing(step)
      try {
        await doing('charge')
        return 'charged'
      } catch {
        await raw(1)
        if (world.attempt > 1 && world.attempt <= 1 + throws) throw new Error('something else')
        await doing('release')
        await raw(60_000)
        return 'declined'
      }
    }
    assert.equal((await lostOnce(world, () => world.records.get(2)?.state === 'done', body)).how, 'crashed')
    world.attempt = 2
    for (let left = throws; left > 0; left--) {
      assert.equal((await until(0, world, body)).how, 'threw')
      world.threw()
    }
    const end = await until(0, world, body)
    return end.how === 'returned' ? end.value : end
  }
  assert.deepEqual([await run(0), await run(1), await run(2)], ['declined', 'declined', 'charged'])
})

test('where nobody says how attempts ended, only the same call behind a failure hands it over', async () => {
  const shop = aShop({ charge: 1 })
  const world = soonest()
  const isAllMade = () => world.records.get(3)?.state === 'done'
  assert.equal((await lostOnce(world, isAllMade, order(shop))).how, 'crashed')
  world.attempt = 2
  const charge = { parent: '', kind: 'step', name: 'charge', hash: '', occurrence: 1 } as unknown as Call
  const journal = world.journal()
  assert.equal(createFormer(journal).take(charge)?.state, 'failed')
  const older = journal.map(({ lost: _, ...record }) => record)
  assert.equal(createFormer(older).take(charge), undefined)
})
