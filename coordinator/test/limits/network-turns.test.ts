import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNetworkTurns } from '../../limits/network-turns.ts'

/** Each item is called by its network. */
function waitingOf(...networks: string[]) {
  const turns = createNetworkTurns<string>()
  for (const network of networks) turns.add(network, network)
  return turns
}

const v6 = (text: string) => `2001:${text}::/64`

test('wide networks take turns, in each its parts, and in those the networks', () => {
  const turns = waitingOf(
    v6('a:1:1'),
    v6('a:1:2'),
    v6('a:1:3'),
    v6('a:2:1'),
    v6('b:1:1'),
    '192.0.2.1',
    '192.0.2.2',
    '192.0.3.1',
    '192.1.2.1',
  )
  assert.deepEqual(turns.take(4), [v6('a:1:1'), v6('b:1:1'), '192.0.2.1', '192.1.2.1'])
  assert.deepEqual(turns.take(4), [v6('a:2:1'), '192.0.3.1', v6('a:1:2'), '192.0.2.2'])
  assert.deepEqual([turns.take(4), turns.size], [[v6('a:1:3')], 0])
})

test('of one network those come first that wait longest', () => {
  const turns = createNetworkTurns<number>()
  for (let n = 1; n <= 3; n++) turns.add('192.0.2.1', n)
  assert.deepEqual(turns.take(5), [1, 2, 3])
})

test('what is taken out has no turn, and is no more there to be taken out', () => {
  const turns = waitingOf('192.0.2.1', '192.0.2.2')
  assert.deepEqual(
    ['192.0.2.1', '192.0.2.1', '192.0.9.9'].map((network) => turns.remove(network, network)),
    [true, false, false],
  )
  assert.deepEqual([turns.size, turns.take(5), turns.size], [1, ['192.0.2.2'], 0])
  assert.equal(turns.remove('192.0.2.2', '192.0.2.2'), false)
})

test('room is made by the network that has more than whoever comes, at the first level where there is one', () => {
  const many = Array.from({ length: 9 }, (_, n) => v6(`a:1:${n}`))
  const turns = waitingOf(...many, v6('a:2:1'), '192.0.2.1')
  for (const newcomer of ['192.0.2.1', v6('a:2:1'), '198.51.100.1'])
    assert.match(turns.takeFor(newcomer)!, /^2001:a:1:/, newcomer)
  // Nobody has more than that /48, and in it nobody more than another.
  assert.equal(turns.takeFor(v6('a:1:ff')), undefined)
  assert.equal(turns.size, 8)
})

test('nobody makes room where each network has one', () => {
  const turns = waitingOf('192.0.2.1', '192.1.2.1', v6('a:1:1'))
  assert.equal(turns.takeFor('198.51.100.1'), undefined)
  assert.equal(turns.size, 3)
})
