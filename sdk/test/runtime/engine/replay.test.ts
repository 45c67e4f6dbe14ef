import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End, type Tools } from './process.ts'
import { aWorld, type World } from './world.ts'

type Body = (calls: Calls, tools: Tools) => Promise<unknown>

/** Until it is parked for the `parks`th time, or has ended. */
async function until(parks: number, world: World, body: Body, replay = false): Promise<End> {
  let left = parks
  const evicts = () => {
    left -= 1
    return left === 0
  }
  return await execute({ program: (tools) => body(callsOn(tools), tools), world, replay, evicts })
}

const resume = (world: World, body: Body) => until(0, world, body, true)
const soonest = () => aWorld(({ n }) => n)

test('a race of two waits that are both there before the resume keeps its winner, 1,000 of 1,000', async () => {
  let firsts = 0
  for (let trial = 0; trial < 1000; trial++) {
    const isFirst = trial % 3 === 0
    const world = aWorld(({ n }) => (n === (isFirst ? 1 : 2) ? 1 : 2))
    const body: Body = async ({ sleep, ask }) => {
      const winner = await Promise.race([sleep(60_000).then(() => 'sleep'), ask('who?').then(() => 'answer')])
      return [winner, await ask(`after ${winner}`)]
    }
    assert.equal((await until(1, world, body)).how, 'evicted')
    world.completeNext()
    world.completeNext()
    assert.equal((await until(1, world, body, true)).how, 'evicted')
    const end = await resume(world, body)
    assert.ok(end.how === 'returned' && Array.isArray(end.value))
    assert.equal(end.value[0], isFirst ? 'sleep' : 'answer')
    if (isFirst) firsts += 1
  }
  assert.equal(firsts, 334)
})

test('a call whose arguments differ is taken for the recorded one that is most alike, and this is noted', async () => {
  const body: Body = async ({ call }) => {
    const both = ['a', 'b'].map((item) => call('thumbs', { item, at: Math.random() }))
    const results = await Promise.all(both)
    return results.map((result) => /"item":"(.)"/.exec(String(result))?.[1])
  }
  const world = soonest()
  assert.equal((await until(1, world, body)).how, 'evicted')
  assert.deepEqual(await resume(world, body), { how: 'returned', value: ['a', 'b'] })
  assert.equal(world.records.size, 2)
  assert.equal(world.begun.size, 2)
})

test('that a call has drifted is noted once, however often it is replayed', async () => {
  const body: Body = async ({ call, ask }) => [await call('any', { at: Math.random() }), await ask('then?')]
  const world = soonest()
  assert.equal((await until(1, world, body)).how, 'evicted')
  world.completeNext()
  assert.equal((await until(1, world, body, true)).how, 'evicted')
  // The world asserts that it is not told again.
  assert.equal((await resume(world, body)).how, 'returned')
  assert.deepEqual(
    [...world.records.values()].map(({ drifted }) => drifted),
    [true, false],
  )
})

test('a program that calls something else than is recorded is blocked, and both are named', async () => {
  const world = soonest()
  assert.equal((await until(1, world, ({ sleep }) => sleep(3_600_000))).how, 'evicted')
  const end = await resume(world, ({ ask }) => ask('Sure?'))
  assert.deepEqual(end, {
    how: 'blocked',
    mismatch: { expected: 'sleep(3600000)', received: 'requestInput({"prompt":"Sure?"})', at: '' },
  })
})

test('a program that ends during its replay is blocked and has not ended', async () => {
  const world = soonest()
  const body: Body = async ({ step, sleep }) => [await step('draw', () => 7), await sleep(60_000)]
  assert.equal((await until(1, world, body)).how, 'evicted')
  const early = await resume(world, () => Promise.resolve('nothing to do'))
  assert.deepEqual(early, {
    how: 'blocked',
    mismatch: { expected: 'step("draw")', received: 'run() returned', at: '' },
  })
  const throwing = await resume(world, async ({ step }) => {
    await step('draw', () => 8)
    throw new Error('broken meanwhile')
  })
  assert.deepEqual(throwing, {
    how: 'blocked',
    mismatch: { expected: 'sleep(60000)', received: 'run() threw Error: broken meanwhile', at: '' },
  })
})

test('a program that waits for less than is recorded is blocked', async () => {
  const world = soonest()
  assert.equal((await until(1, world, ({ sleep, ask }) => Promise.all([sleep(60_000), ask('a')]))).how, 'evicted')
  const end = await resume(world, ({ sleep }) => sleep(60_000))
  assert.ok(end.how === 'blocked')
  assert.equal(end.mismatch.expected, 'requestInput({"prompt":"a"})')
})

test('a result that came while the program was idle is not given before it is idle again', async () => {
  // What is raw ends before the second result: a replay that gave that at once would turn the two round.
  const body: Body = async ({ sleep, ask }, { raw }) => {
    const seen: string[] = []
    const slow = ask('slow').then(() => seen.push('answer'))
    await sleep(60_000)
    await raw(5).then(() => seen.push('raw'))
    await slow
    await ask('end')
    return seen
  }
  const world = aWorld(({ n }) => [0, 20, 10, 10][n] ?? 1)
  assert.equal((await until(3, world, body)).how, 'evicted')
  assert.deepEqual(await resume(world, body), { how: 'returned', value: ['raw', 'answer'] })
})

test('a result is not given before all is called that had been called by then', async () => {
  const body: Body = async ({ ask }, { raw }) => {
    let isAsked = false
    const first = ask('first').then(() => isAsked)
    const second = raw(5).then(() => {
      isAsked = true
      return ask('second')
    })
    // Something goes on all the while: no result comes to an idle program.
    await raw(30)
    return [await first, await second]
  }
  const world = aWorld(({ n }) => (n === 1 ? 10 : 100))
  assert.equal((await until(1, world, body)).how, 'evicted')
  assert.deepEqual(await resume(world, body), { how: 'returned', value: [true, 'input:second:{"prompt":"second"}'] })
})

test('a step that waits inside of it is executed again, and what it has got already is not asked again', async () => {
  const executed: string[] = []
  const body: Body = ({ step, ask }) =>
    step('outer', async () => {
      executed.push('outer')
      const drawn = await step('inner', () => executed.push('inner'))
      return [drawn, await ask('go on?')]
    })
  const world = soonest()
  assert.equal((await until(1, world, body)).how, 'evicted')
  assert.equal((await resume(world, body)).how, 'returned')
  assert.deepEqual(executed, ['outer', 'inner', 'outer'])
  assert.deepEqual(
    [...world.records.values()].map(({ kind, parent }) => `${kind} ${parent}`),
    ['step ', 'step /outer#1', 'input /outer#1'],
  )
})

test('a step that waits inside of it and fails in a replay may pass in the next one', async () => {
  const world = soonest()
  let isCut = false
  const body: Body = ({ step, sleep }) =>
    step('outer', async () => {
      if (isCut) throw new Error('connect ECONNREFUSED')
      await step('inner', () => 1)
      await sleep(3_600_000)
      return 7
    }).catch(() => 'undone')
  assert.equal((await until(1, world, body)).how, 'evicted')
  isCut = true
  const end = await resume(world, body)
  assert.ok(end.how === 'blocked')
  const { expected, received, mayPass } = end.mismatch
  assert.deepEqual([received, mayPass], ['step("outer") failed: connect ECONNREFUSED', true])
  assert.match(expected, /^step\("inner"\)/)
  isCut = false
  assert.deepEqual(await resume(world, body), { how: 'returned', value: 7 })
})

test('a step that waited inside of it and fails behind that has failed', async () => {
  const world = soonest()
  const body: Body = ({ step, sleep }) =>
    step('outer', async () => {
      await sleep(3_600_000)
      throw new Error('too late')
    }).catch((error: Error) => error.message)
  assert.equal((await until(1, world, body)).how, 'evicted')
  world.completeNext()
  assert.deepEqual(await resume(world, body), { how: 'returned', value: 'too late' })
})

test('what crashed starts anew with what it has: results at once, waits as they are, failures never', async () => {
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
  assert.deepEqual(executed, ['flaky', 'pay', 'flaky'])
  assert.deepEqual(
    [...world.records.values()].map(({ n, attempt, name }) => `${n} ${name} ${attempt}`),
    ['1 flaky 1', '2 pay 2', '3 child 2', '4 sure? 2', '5 flaky 2'],
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

test('a step that ends while the replay rests is given at once, without a wake', async () => {
  const body: Body = async ({ ask, step }, { unkept }) => {
    const slow = step('slow', async () => {
      await step('inner', () => 1)
      await unkept(50)
      return 'done'
    })
    return Promise.race([slow, ask('who?')])
  }
  const world = aWorld(() => 10_000)
  assert.equal((await until(1, world, body)).how, 'evicted')
  assert.deepEqual(await resume(world, body), { how: 'returned', value: 'done' })
  assert.ok(world.now < 10_000, `it was given at ${world.now}`)
})
