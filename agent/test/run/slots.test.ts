import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { createBell } from '../../bell.ts'
import { createSlots } from '../../run/slots.ts'
import { aProgram } from '../_kit/bundle.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import type { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** Slots of which those who begin take theirs. */
function aMachine(total: number) {
  const state = { total, computing: 0 }
  const began: string[] = []
  const slots = createSlots({ total: () => state.total, computing: () => state.computing, bell: createBell() })
  const take = (name: string, count: number) =>
    slots.take(() => {
      began.push(name)
      state.computing += count
    }, count)
  const freed = (count: number) => {
    state.computing -= count
    slots.freed()
  }
  return { slots, began, take, freed, state }
}

test('a run that needs several slots waits until there are so many, and none overtakes it', () => {
  const { slots, began, take, freed } = aMachine(4)
  take('two', 2)
  take('three', 3)
  take('one', 1)
  assert.deepEqual(began, ['two'])
  assert.equal(slots.free(), 0, 'what waits counts')
  freed(2)
  assert.deepEqual(began, ['two', 'three', 'one'])
})

test('whoever gives up lets the next one in', () => {
  const { began, take, freed } = aMachine(2)
  take('first', 2)
  const giveUp = take('second', 2)
  take('third', 1)
  giveUp()
  freed(2)
  assert.deepEqual(began, ['first', 'third'])
})

test('whoever gives up lets those behind it in that fit now', () => {
  const { slots, began, take } = aMachine(4)
  take('three', 3)
  const giveUp = take('four', 4)
  take('one', 1)
  giveUp()
  assert.deepEqual(began, ['three', 'one'])
  giveUp()
  assert.equal(slots.free(), 0)
})

test('a run that needs more than there is has the machine to itself', () => {
  const { began, take, freed } = aMachine(2)
  take('small', 1)
  take('huge', 8)
  assert.deepEqual(began, ['small'])
  freed(1)
  assert.deepEqual(began, ['small', 'huge'])
})

function say(fake: FakeCoordinator, slots: number): void {
  const limits = { memoryMb: null, cpus: null, processes: null, openFiles: null, diskMb: null }
  const pool: AgentSettings['pool'] = {
    isolation: 'process',
    network: 'host',
    slots,
    limits,
    parkedMs: null,
    drainMs: null,
  }
  fake.send({ t: 'beat', n: 0, stale: [], cancel: [], settings: { ...fake.settings, pool } })
}

withAgent(
  'a pool that says how many slots its machines have is obeyed at once',
  async ({ fake, agent }) => {
    await agent.connected
    say(fake, 1)
    await until('it tells', () => fake.heard('heartbeat').at(-1)?.slots === 1)
    await until('it polls', () => fake.polling() > 0)
    const program = await aProgram(`setInterval(() => {}, 1e9); console.log(1); await new Promise(() => {})`)
    const first = fake.offer(program)
    await until('the first one runs', () => linesOf(first).length > 0)
    const second = fake.offer(program)
    const beats = fake.heard('heartbeat').length
    await until('some heartbeats', () => fake.heard('heartbeat').length >= beats + 3)
    assert.equal(second.state, 'offered')
    say(fake, 2)
    await until('the second one runs', () => linesOf(second).length > 0)
  },
  { env: { WINDLASS_AGENT_SLOTS: '' } },
)
