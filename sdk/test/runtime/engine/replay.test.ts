import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Body, resume, soonest, until } from './bodies.ts'
import { aWorld } from './world.ts'

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
