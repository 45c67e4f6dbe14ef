// The next attempt is given what the last one was given in the order of before, though it does work between its calls
// that takes its time again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Body, lostOnce, until } from './bodies.ts'
import { callsOn } from './calls.ts'
import { execute, type End } from './process.ts'
import { aWorld, type World } from './world.ts'

const HOUR = 3_600_000

/** So many attempts before this one have come to their last call, and were lost. */
async function lostAtLast(world: World, body: Body): Promise<void> {
  const isThere = () =>
    [...world.records.values()].some(({ name, attempt }) => name === 'last' && attempt === world.attempt)
  assert.equal((await lostOnce(world, isThere, body)).how, 'crashed')
  world.attempt += 1
}

const last: Body = async ({ step }) => await step('last', () => {})

/** Pays, unless the deadline is over before. `ms`: how long the work takes that is no step. */
const paying =
  (ms: () => number, done: string[]): Body =>
  async ({ step, sleep }, { raw }) => {
    const pay = async () => {
      await step('reserve', () => void done.push('reserve'))
      await raw(ms())
      await step('charge', () => void done.push('charge'))
      return 'paid'
    }
    const winner = await Promise.race([pay(), sleep(HOUR).then(() => 'late')])
    await step(winner, () => void done.push(winner))
    return winner
  }

/** The deadline is over in the midst of what comes later. */
const andLater =
  (body: Body, done: string[]): Body =>
  async (calls, tools) => {
    const winner = await body(calls, tools)
    await tools.raw(100)
    await calls.step('then', () => void done.push('then'))
    await last(calls, tools)
    return winner
  }

test('a race that was won by a step behind work that is none keeps its winner over attempts', async () => {
  for (const [attempts, due] of [
    [2, 50],
    [3, 50],
    [2, Infinity],
  ] as const) {
    const done: string[] = []
    const world = aWorld(() => due)
    const body = andLater(
      paying(() => 10 * world.attempt, done),
      done,
    )
    while (world.attempt < attempts) await lostAtLast(world, body)
    if (due === Infinity)
      world.records.forEach(
        (each) => each.kind === 'sleep' && Object.assign(each, { state: 'done', result: 'null', completed: 1 }),
      )
    assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'paid' })
    assert.deepEqual(done, ['reserve', 'charge', 'paid', 'then'])
  }
})

test('so does one whose next attempt was lost in the midst of that work', async () => {
  const done: string[] = []
  const world = aWorld(() => 50)
  const body = andLater(
    paying(() => 10, done),
    done,
  )
  await lostAtLast(world, body)
  const isAmid = () => [...world.records.values()].filter(({ attempt }) => attempt === 2).length === 2
  assert.equal((await lostOnce(world, isAmid, body)).how, 'crashed')
  world.attempt = 3
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'paid' })
})

test('one that was won by such work alone keeps its winner where a call behind it is recorded', async () => {
  const world = aWorld(({ kind }) => (kind === 'sleep' ? 50 : Infinity))
  const body: Body = async ({ sleep, ask, step }, { raw }) => {
    const winner = await Promise.race([raw(10 * world.attempt).then(() => 'quick'), sleep(HOUR).then(() => 'late')])
    void ask(winner)
    await raw(100)
    await step('last', () => {})
    return winner
  }
  await lostAtLast(world, body)
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'quick' })
})

test('neither what is over only now, nor a step that is quicker now, overtakes what was given', async () => {
  for (const slow of ['sleep', 'step'] as const) {
    const world = aWorld(({ kind }) => (kind === 'sleep' ? 1_000 : Infinity))
    const body: Body = async ({ step, sleep }, { raw }) => {
      const other = slow === 'sleep' ? sleep(HOUR) : step('slow', () => raw(world.attempt === 1 ? 1_000 : 1))
      const pay = async () => {
        await step('reserve', () => {})
        await raw(10)
        await step('charge', () => {})
        return 'paid'
      }
      const winner = await Promise.race([pay(), other.then(() => 'late')])
      await step(winner, () => {})
      await step('last', () => {})
      return winner
    }
    await lostAtLast(world, body)
    // The sleep ends within the work.
    world.now = 999
    assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'paid' }, slow)
  }
})

/** The next attempt asks for the second alone, and calls no more before it has it. */
const goingAnotherWay =
  (world: World): Body =>
  async ({ step, sleep }) => {
    if (world.attempt === 1) {
      await step('first', () => {})
      await sleep(HOUR)
    }
    await step('second', () => {})
    return await step('last', () => world.attempt)
  }

test('a program that goes another way is given what there is as soon as it stands still', async () => {
  const world = aWorld(() => 1)
  await lostAtLast(world, goingAnotherWay(world))
  const before = world.now
  assert.equal((await until(0, world, goingAnotherWay(world))).how, 'returned')
  assert.ok(world.now - before < 1_000, `${world.now - before} ms`)
})

test('one that never stands still is given it after half a minute, once', async () => {
  const world = aWorld(() => 1)
  const body: Body = async (calls, tools) => {
    const polls = { isOver: false }
    const poll = async () => {
      while (!polls.isOver) await tools.raw(10_000)
    }
    void poll()
    for (const name of ['a', 'b', 'c']) {
      if (world.attempt === 1) await calls.ask(`before ${name}`)
      await calls.step(name, () => {})
    }
    await last(calls, tools)
    polls.isOver = true
  }
  await lostAtLast(world, body)
  const before = world.now
  assert.equal((await until(0, world, body)).how, 'returned')
  assert.ok(world.now - before >= 30_000 && world.now - before < 60_000, `${world.now - before} ms`)
})

test('what followed from a failure that is tried again is not waited for', async () => {
  const world = aWorld(() => 1)
  let fails = true
  const body: Body = async ({ step }, { raw }) => {
    const [first] = await Promise.allSettled([
      step('flaky', async () => {
        if (fails) throw new Error('no')
        // A new try: long, and all else is done by then.
        await raw(10_000)
      }).catch(async (error: Error) => {
        await step('report', () => {})
        throw error
      }),
      (async () => {
        await raw(20)
        await step('a', () => {})
        await step('b', () => times.push(world.now))
        times.push(world.now)
      })(),
    ])
    if (first.status === 'rejected') throw new Error('in vain')
  }
  const times: number[] = []
  assert.equal((await until(0, world, body)).how, 'threw')
  world.threw()
  fails = false
  const before = world.now
  times.length = 0
  assert.equal((await until(0, world, body)).how, 'returned')
  assert.ok(times[0]! - before < 1_000, `${times[0]! - before} ms`)
})

async function stopped(world: World, body: Body, graceMs: number): Promise<End> {
  let isAsked = false
  const stops = () => (isAsked ? undefined : ((isAsked = true), graceMs))
  return await execute({ program: (tools) => body(callsOn(tools), tools), world, replay: true, stops })
}

test('amid that work a wait that is open rejects after a part of the grace, and none that is over', async () => {
  const heard: unknown[] = []
  const world = aWorld(({ args }) => (args === String(HOUR) ? 5_000 : Infinity))
  const body: Body = async (calls, tools) => {
    const open = calls.ask('more?').catch(() => heard.push('rejected'))
    heard.push(await paying(() => 1_000, heard as string[])(calls, tools))
    await open
    return heard
  }
  assert.equal((await until(1, world, body)).how, 'evicted')
  world.completeNext()
  assert.equal((await until(1, world, body, true)).how, 'evicted')
  heard.length = 0
  assert.deepEqual(await stopped(world, body, 400), { how: 'returned', value: ['rejected', 'paid'] })
})
