// What the attempt after a crash takes over from the one before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Body, lostOnce, resume, soonest, until } from './bodies.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute } from './process.ts'
import { aWorld } from './world.ts'

for (const wasGiven of [true, false]) {
  const what = wasGiven ? 'had' : 'had not'
  test(`a race keeps the winner that an attempt ${what} before it was lost`, async () => {
    // The answer is there before the sleep is over, and is asked for after it.
    const world = aWorld(({ n }) => (n === 1 ? 2 : n === 2 ? 1 : 1000))
    const body: Body = async ({ sleep, ask }) => {
      const winner = await Promise.race([sleep(60_000).then(() => 'sleep'), ask('who?').then(() => 'answer')])
      return [winner, await ask(`after ${winner}`)]
    }
    assert.equal((await until(1, world, body)).how, 'evicted')
    world.completeNext()
    if (wasGiven) assert.equal((await until(1, world, body, true)).how, 'evicted')
    world.completeNext()
    world.attempt = 2
    assert.equal((await until(1, world, body)).how, 'evicted')
    const end = await resume(world, body)
    assert.deepEqual(end, { how: 'returned', value: ['answer', 'input:after answer:{"prompt":"after answer"}'] })
  })
}

/** The question is asked first, and the step is over first. */
const racing: Body = async ({ step, ask }) =>
  await Promise.race([ask('who?').then(() => 'answer'), step('quick', () => {}).then(() => 'step')])

const NEXT_CALLS: Record<string, Body> = {
  step: ({ step }) => step('next', () => 'done'),
  // Parked it would be told in any case.
  child: ({ call }, { raw }) => Promise.all([call('next', 1), raw(10)]),
  'step within a step': ({ step }) => step('outer', () => step('next', () => 'done')),
}

for (const [what, next] of Object.entries(NEXT_CALLS)) {
  test(`a race keeps its winner once a ${what} that follows it is told, however soon the process is lost`, async () => {
    const world = aWorld(() => 1_000_000)
    const body: Body = async (calls, tools) => {
      const winner = await racing(calls, tools)
      await next(calls, tools)
      return winner
    }
    const hasNext = () => [...world.records.values()].some(({ name }) => name === 'next')
    assert.equal((await lostOnce(world, hasNext, body)).how, 'crashed')
    world.completeNext()
    world.attempt = 2
    assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'step' })
  })
}

test('a race keeps its winner over attempts that are lost before they are given anything, or amid it', async () => {
  for (const given of [0, 1]) {
    const world = aWorld(() => 1_000_000)
    const body: Body = async (calls, tools) => {
      const winner = await racing(calls, tools)
      await calls.step('next', () => {})
      // So that what comes second is given too.
      await tools.raw(10)
      await calls.step('last', () => {})
      return winner
    }
    const has = (step: string) => () => [...world.records.values()].some(({ name }) => name === step)
    assert.equal((await lostOnce(world, has('next'), body)).how, 'crashed')
    world.completeNext()
    world.attempt = 2
    assert.equal((await lostOnce(world, has('last'), body)).how, 'crashed')
    // An attempt takes both over, and is lost.
    world.attempt = 3
    const takenOver = () => [...world.records.values()].filter(({ attempt }) => attempt === 3)
    const isGiven = () =>
      takenOver().length >= 2 && takenOver().filter((each) => each.delivered !== null).length >= given
    assert.equal((await lostOnce(world, isGiven, body)).how, 'crashed')
    world.attempt = 4
    assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'step' })
  }
})

test('a race keeps its winner when only one of both was taken over', async () => {
  const world = aWorld(({ n }) => n)
  const body: Body = async ({ ask }) => await Promise.race(['first', 'second'].map((name) => ask(name)))
  const throws: Body = async (calls, tools) => {
    await Promise.all([body(calls, tools), tools.raw(100)])
    throw new Error('no')
  }
  assert.equal((await until(0, world, throws)).how, 'threw')
  assert.deepEqual(
    [...world.records.values()].map(({ delivered }) => delivered),
    [1, 2],
  )
  world.attempt = 2
  assert.equal((await lostOnce(world, () => world.records.get(1)?.attempt === 2, body)).how, 'crashed')
  // The word for the second did not arrive.
  Object.assign(world.records.get(2)!, { attempt: 1, delivered: 2, former: null })
  world.attempt = 3
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'input:first:{"prompt":"first"}' })
})

test('a race keeps its winner when the program throws behind it', async () => {
  const world = aWorld(() => 1_000_000)
  const body: Body = async (calls, tools) => {
    const winner = await racing(calls, tools)
    if (world.attempt === 1) throw new Error('not now')
    return winner
  }
  assert.equal((await until(0, world, body)).how, 'threw')
  world.completeNext()
  world.attempt = 2
  assert.deepEqual(await until(0, world, body), { how: 'returned', value: 'step' })
})

test('a race keeps its winner when the run is to end, and what had failed is executed again', async () => {
  const world = soonest()
  const body: Body = async ({ sleep, step, ask }, { raw }) => {
    const fails = async () => {
      // It takes longer than the answer.
      if (world.attempt === 1) await raw(10)
      throw new Error('no')
    }
    const late = async () => {
      await sleep(60_000)
      await step('fails', fails).catch(() => {})
      return 'late'
    }
    const winner = await Promise.race([late(), ask('go on?')])
    await step('behind', () => {})
    if (world.attempt === 1) await raw(100)
    return String(winner).split(':')[0]
  }
  const isBehind = () => [...world.records.values()].some(({ name }) => name === 'fails')
  assert.equal((await lostOnce(world, isBehind, body)).how, 'crashed')
  world.attempt += 1
  let asked = 0
  const stops = () => (asked++ === 0 ? 0 : undefined)
  const end = await execute({ program: (tools) => body(callsOn(tools), tools), world, replay: false, stops })
  assert.deepEqual(end, { how: 'returned', value: 'input' })
})

test('what was given is told with the next call where a later attempt has to know of it, and else later', async () => {
  const opsOf = async ({ before = () => {}, between = () => {} }: Record<string, (calls: Calls) => unknown>) => {
    const world = aWorld(() => 1_000_000)
    const ops: string[] = []
    const apply = world.apply.bind(world)
    world.apply = (op) => {
      ops.push(op.op)
      apply(op)
    }
    const body: Body = async (calls) => {
      void before(calls)
      for (let i = 0; i < 3; i++) {
        await calls.step('one', () => i)
        await between(calls)
      }
    }
    assert.equal((await until(0, world, body)).how, 'returned')
    return ops.join()
  }
  assert.equal(await opsOf({}), 'close,close,close')
  const [ask, sleep, doze] = [(c: Calls) => c.ask('stop?'), (c: Calls) => c.sleep(60_000), (c: Calls) => c.sleep(5)]
  assert.equal(await opsOf({ before: ask }), 'open,close,deliver,close,deliver,close')
  // A wait that is over does not reject. The coordinator knows it of one that this process has brought to its end.
  assert.equal(
    await opsOf({ between: sleep }),
    'close,open,deliver,deliver,close,open,deliver,deliver,close,open,deliver',
  )
  assert.equal(await opsOf({ between: doze }), 'close,close,close,close,close')
})

test('what crashed starts anew with what it has: results and failures at once, and waits as they are', async () => {
  const executed: string[] = []
  const body: Body = async ({ step, ask, call }) => {
    await step('flaky', () => {
      executed.push('flaky')
      throw new Error('not now')
    }).catch(() => {})
    await step('pay', () => executed.push('pay'))
    return [await call('child', 1), await ask('sure?')]
  }
  const world = soonest()
  assert.equal((await until(2, world, body)).how, 'evicted')
  world.attempt = 2
  const end = await until(0, world, body)
  assert.equal(end.how, 'returned')
  assert.deepEqual(executed, ['flaky', 'pay'])
  assert.deepEqual(
    [...world.records.values()].map(({ n, attempt, name }) => `${n} ${name} ${attempt}`),
    ['1 flaky 2', '2 pay 2', '3 child 2', '4 sure? 2'],
  )
})

test('what was taken over late does not hold up what had been given before', async () => {
  // Entry 1 is taken over after the sleep, and something else of the program goes on for as long as the sleep.
  const body: Body = async ({ call, sleep }, { raw }) => {
    if (world.attempt === 1) return await call('child', 1)
    const other = { isOver: false }
    const poll = async () => {
      while (!other.isOver) await raw(10)
    }
    const polling = poll()
    await sleep(2_000)
    other.isOver = true
    await polling
    const called = call('child', 1)
    await sleep(60_000)
    return await called
  }
  const world = aWorld(({ n }) => [0, 1_000_000, 2_000, 3_000_000][n] ?? 1)
  assert.equal((await until(1, world, body)).how, 'evicted')
  world.attempt = 2
  assert.equal((await until(1, world, body)).how, 'evicted')
  assert.deepEqual(
    [...world.records.values()].map(({ n, position, after }) => [n, position, after]),
    [
      [1, 2, 0],
      [2, 1, 1],
      [3, 3, 0],
    ],
  )
  assert.deepEqual(await resume(world, body), { how: 'returned', value: 'child:child:{"input":1}' })
})

for (const name of ['works', 'fails']) {
  test(`a child that ${name} between the crash and the call that adopts it ends it, also in a replay`, async () => {
    const body: Body = async ({ call, sleep }) => {
      // It was still open when it was handed over.
      if (world.attempt === 2 && world.records.get(1)?.state === 'open') world.completeNext()
      const result = await call(name, 1).catch(String)
      await sleep(60_000)
      return result
    }
    const world = soonest()
    assert.equal((await until(1, world, body)).how, 'evicted')
    world.attempt = 2
    assert.equal((await until(2, world, body)).how, 'evicted')
    const value = name === 'works' ? 'child:works:{"input":1}' : 'Error: no fails'
    assert.deepEqual(await resume(world, body), { how: 'returned', value })
    assert.equal(world.records.size, 2)
  })
}

test('a wake for something that is not called yet is kept for it', async () => {
  const world = soonest()
  assert.equal((await until(1, world, ({ call }) => call('child', 1))).how, 'evicted')
  world.attempt = 2
  const end = await until(0, world, async ({ ask, call }, { engine, raw }) => {
    engine.wake([world.completeNext()])
    await raw(1)
    return [await call('child', 1), await ask('more?')]
  })
  assert.deepEqual(end, { how: 'returned', value: ['child:child:{"input":1}', 'input:more?:{"prompt":"more?"}'] })
})
