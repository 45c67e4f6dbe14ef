import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAtRest, isOpen, isOver, isReplay, transition } from '../../../runtime/engine/states.ts'
import type { Action, Event, State } from '../../../runtime/engine/states.ts'

const EVENTS = ['caughtUp', 'idle', 'woken', 'strayed', 'stopped', 'ended'] as const satisfies Event[]

interface Stand {
  state: State
  /** All that was done on the way here. */
  done: readonly Action[]
  isHeld: boolean
}

function after({ state, done, isHeld }: Stand, event: Event): Stand {
  const [to, actions] = transition(state, event)
  const holds = actions.filter((action) => action === 'hold' || action === 'letGo')
  return { state: to, done: [...done, ...actions], isHeld: holds.length > 0 ? holds.at(-1) === 'hold' : isHeld }
}

/** Where all paths of up to so many events lead. */
function paths(from: State, events: number): Stand[] {
  let stands: Stand[] = [{ state: from, done: [], isHeld: false }]
  const all = [...stands]
  for (let left = events; left > 0; left--) {
    stands = stands.flatMap((stand) => EVENTS.map((event) => after(stand, event)))
    all.push(...stands)
  }
  return all
}

const replays = paths('replaying', 5)
const fresh = paths('live', 5)
const count = ({ done }: Stand, action: Action) => done.filter((each) => each === action).length

test('a replay that is over is said once, and a blocked one never', () => {
  for (const stand of replays) {
    const isSaid = !isReplay(stand.state) && stand.state !== 'blocked'
    assert.equal(count(stand, 'sayLive'), isSaid ? 1 : 0, stand.state)
  }
  for (const stand of fresh) assert.equal(count(stand, 'sayLive'), 0)
})

test('what a replay held is begun once, or rejected', () => {
  for (const stand of replays) {
    if (isReplay(stand.state) || stand.state === 'blocked') assert.equal(count(stand, 'beginHeld'), 0)
    if (isOpen(stand.state) && !isReplay(stand.state)) assert.equal(count(stand, 'beginHeld'), 1)
    if (stand.state === 'stopped') assert.equal(count(stand, 'rejectWaits'), 1)
    assert.equal(count(stand, 'readyResults'), count(stand, 'beginHeld'))
  }
})

test('the process is held at rest and when it is blocked, and at no other time', () => {
  for (const { state, isHeld } of [...replays, ...fresh])
    assert.equal(isHeld, isAtRest(state) || state === 'blocked', state)
})

test('the journal is closed once, when the run is not open any more, and after the last calls were told', () => {
  for (const stand of [...replays, ...fresh]) {
    assert.equal(count(stand, 'close'), isOpen(stand.state) ? 0 : 1, stand.state)
    const { done } = stand
    if (done.includes('finish')) assert.ok(done.indexOf('finish') < done.indexOf('close'))
    if (stand.state === 'ended' && !done.includes('rejectWaits')) assert.equal(count(stand, 'finish'), 1)
  }
})

test('what is over stays as it is, and what is stopped can only end', () => {
  for (const event of EVENTS) {
    for (const state of ['blocked', 'ended'] as const) assert.deepEqual(transition(state, event), [state, []])
    assert.deepEqual(transition('stopped', event), [event === 'ended' ? 'ended' : 'stopped', []])
  }
})

test('a program does not end in the midst of its replay, and does not stray from anything new', () => {
  assert.deepEqual(transition('replaying', 'ended'), ['replaying', []])
  for (const state of ['resting', 'live', 'parked', 'stopped'] as const) {
    assert.deepEqual(transition(state, 'strayed'), [state, []])
    assert.equal(transition(state, 'ended')[0], 'ended')
  }
})

test('each state is reached, and none leads back into the replay', () => {
  const reached = (stands: Stand[]) => [...new Set(stands.map(({ state }) => state))].toSorted()
  assert.deepEqual(reached(replays), ['blocked', 'ended', 'live', 'parked', 'replaying', 'resting', 'stopped'])
  assert.deepEqual(reached(fresh), ['ended', 'live', 'parked', 'stopped'])
  for (const { state } of replays) assert.equal(isOver(state), state === 'blocked' || state === 'ended')
})
