import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBell } from '../../bell.ts'
import type { AgentRun } from '../../run/agent-run.ts'
import { createParking, reasonToGo } from '../../run/parking.ts'
import { createSlots } from '../../run/slots.ts'
import { aLog } from '../_kit/an-agent.ts'

const waiting = { isLeaving: false, completions: new Map(), reason: undefined }
const woken = { ...waiting, completions: new Map([[1, { n: 1, state: 'done' as const, value: null }]]) } as never

test('the first reason to go stays, unless there is no choice', () => {
  assert.equal(reasonToGo(waiting, 'memory'), 'memory')
  assert.equal(reasonToGo({ ...waiting, reason: 'age' }, 'memory'), 'age')
  assert.equal(reasonToGo({ ...waiting, reason: 'age' }, 'draining'), 'draining')
})

test('one that has been woken goes only where there is no choice', () => {
  assert.equal(reasonToGo(woken, 'age'), undefined)
  assert.equal(reasonToGo(woken, 'no slot'), 'no slot')
  assert.equal(reasonToGo(woken, 'shutdown'), 'shutdown')
})

test('one that goes already does not go once more', () => {
  assert.equal(reasonToGo({ ...waiting, isLeaving: true }, 'shutdown'), undefined)
})

test('no parked program goes on as the one before it in line is given up, where nothing more is to begin', () => {
  const state: { closed: 'draining' | undefined } = { closed: undefined }
  const moves: string[] = []
  const aParked = (run: string, slots: number) =>
    ({
      offer: { run, epoch: 1, slots },
      news: (completions: unknown) => completions,
      wake: () => void moves.push(`${run} goes on`),
      evict: (why: string) => void moves.push(`${run}: ${why}`),
    }) as unknown as AgentRun
  const slots = createSlots({ total: () => 2, computing: () => 1, bell: createBell() })
  const parking = createParking({
    slots,
    closed: () => state.closed,
    ageMs: () => 3_600_000,
    most: 10,
    wakeMs: 3_600_000,
    memoryReserve: 0,
    memoryFree: () => 1,
    memoryMs: 3_600_000,
    isCommitted: () => true,
    log: aLog().log,
  })
  const both = [aParked('large', 2), aParked('small', 1)]
  for (const each of both) parking.parked(each, 1)
  for (const each of both) parking.wake(each, [{ n: 1, state: 'done', result: 'null' }])
  assert.deepEqual(moves, [], 'the large one waits, and the small one behind it')
  state.closed = 'draining'
  parking.look()
  assert.deepEqual(new Set(moves), new Set(['large: draining', 'small: draining']))
  for (const each of both) parking.left(each)
})
