// A run that is to end amid a replay in which calls have other arguments than recorded.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createArrival } from '../../../runtime/engine/arrival.ts'
import { soonest, until, type Body } from './bodies.ts'
import { callsOn, type Calls } from './calls.ts'
import { execute, type End } from './process.ts'
import { aWorld, type World } from './world.ts'

/** A replay that is stopped at its start, without a moment for it. */
function stopped(world: World, body: Body): Promise<End> {
  let asked = 0
  const stops = () => (asked++ === 0 ? 0 : undefined)
  return execute({ program: (tools) => body(callsOn(tools), tools), world, replay: true, stops })
}

/** Another argument at each call. */
const ship = (calls: Calls, item: number) => calls.call('ship', { item, chance: Math.random() })

test('calls with other arguments are given what is recorded, one after another', async () => {
  const body: Body = async (calls) => {
    const got = [await ship(calls, 1), await ship(calls, 2)]
    await calls.ask('go on?').catch((error) => got.push(String(error)))
    return got
  }
  const world = soonest()
  assert.equal((await until(3, world, body)).how, 'evicted')
  assert.deepEqual(await stopped(world, body), {
    how: 'returned',
    value: ['child:ship:{"input":{"item":1,}}', 'child:ship:{"input":{"item":2,}}', 'Error: stopped'],
  })
})

test('side by side each is given its own, and one that is not over rejects', async () => {
  const body: Body = (calls) => Promise.all([3, 1, 2].map((item) => ship(calls, item).catch(String)))
  // The one that is called second is never over.
  const world = aWorld(({ args }) => (args.includes('"item":1') ? Infinity : 1))
  assert.equal((await until(3, world, body)).how, 'evicted')
  assert.deepEqual(await stopped(world, body), {
    how: 'returned',
    value: ['child:ship:{"input":{"item":3,}}', 'Error: stopped', 'child:ship:{"input":{"item":2,}}'],
  })
})

test('a race keeps its winner', async () => {
  for (const first of ['ship', 'go on?']) {
    const body: Body = async (calls, { raw }) => {
      // So that its replay is not through.
      void raw(100)
      const winner = await Promise.race([calls.ask('go on?'), ship(calls, 1)])
      await calls.ask('end?').catch(() => {})
      return String(winner).split(':')[0]
    }
    const world = aWorld(({ name }) => (name === 'end?' ? Infinity : name === first ? 1 : 2))
    assert.equal((await until(1, world, body)).how, 'evicted')
    const value = first === 'ship' ? 'child' : 'input'
    assert.deepEqual(await stopped(world, body), { how: 'returned', value }, first)
  }
})

test('what is called once something has rejected is not taken for what is recorded', async () => {
  let isFirst = true
  const body: Body = async (calls, { raw }) => {
    if (!isFirst)
      return await calls
        .ask('other?')
        .catch(() => ship(calls, 2))
        .catch(String)
    isFirst = false
    await ship(calls, 1)
    for (;;) await calls.ask('go on?').then(() => raw(1))
  }
  const world = aWorld(({ kind }) => (kind === 'input' ? Infinity : 1))
  assert.equal((await until(2, world, body)).how, 'evicted')
  assert.deepEqual(await stopped(world, body), { how: 'returned', value: 'Error: stopped' })
})

test('a call that the program makes for its end takes nothing from one that is over', async () => {
  let isReplay = false
  const body: Body = async ({ call, ask }, { raw }) => {
    // So that its replay is not through.
    await raw(100)
    if (isReplay) await call('notify', { text: 'stopped' }).catch(() => {})
    const answer = await call('notify', { text: 'shipped' }).catch(String)
    await ask('go on?').catch(() => {})
    return answer
  }
  const world = aWorld(({ name }) => (name === 'go on?' ? Infinity : 1))
  assert.equal((await until(2, world, body)).how, 'evicted')
  isReplay = true
  assert.deepEqual(await stopped(world, body), { how: 'returned', value: 'child:notify:{"input":{"text":"shipped"}}' })
})

test('what was put off is done after the shorter time, where it is put off again', () => {
  const timers: number[] = []
  const done: string[] = []
  const ends: (() => void)[] = []
  const later = (ms: number, _: boolean, act: () => void) => {
    timers.push(ms)
    ends.push(act)
    return () => void timers.splice(timers.indexOf(ms), 1)
  }
  const arrival = createArrival(() => ({ later, soon: () => {} }))
  arrival.putOff(() => done.push('first'), 10_000)
  arrival.putOff(() => done.push('second'), 20)
  ends[1]!()
  assert.deepEqual([done, timers, arrival.come()], [['first'], [], false])
})
