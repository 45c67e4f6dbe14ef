// Which body gives way where all together have too much.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'

const MIB = 1024 * 1024
const PIECE = MIB / 2
const MANY = 100

/** Room for all that `MANY` networks have, and no more. */
function aRoom() {
  const inFlight = createBytesInFlight({ org: 75 * MIB, all: 2 * MANY * MIB }, { scope: 'address' })
  const gone: string[] = []
  /** Comes in pieces. */
  const send = (network: string, bytes: number) => {
    const holding = inFlight.hold(network, () => {
      gone.push(network)
      holding.release()
    })
    for (let left = bytes; left > 0; left -= PIECE) holding.take(Math.min(left, PIECE))
    return holding
  }
  const waiting = (org: string, network: string, bytes: number) => {
    const holding = send(network, bytes)
    holding.whole()
    holding.countFor(org)
    holding.wait(() => gone.push(org))
  }
  return { gone, send, waiting }
}

const WIDE = [
  ['a /48 of IPv6', (n: number) => `2001:db8:1:${n.toString(16)}::/64`],
  ['a /32 of IPv6', (n: number) => `2001:db8:${n.toString(16)}:1::/64`],
  ['a /24 of IPv4', (n: number) => `203.0.113.${n}`],
  ['a /16 of IPv4', (n: number) => `203.0.${n}.7`],
] as const

for (const [what, nth] of WIDE)
  test(`a little from each of many networks in ${what} gives way to others, and no org to it`, () => {
    const { gone, send, waiting } = aRoom()
    waiting('org', '198.51.100.7', 10 * MIB)
    for (let n = 0; n < MANY - 5; n++) send(nth(n), 2 * MIB)
    for (const network of ['192.0.2.1', '2001:db9:1:1::/64']) send(network, 10 * MIB).whole()
    assert.equal(gone.length, 10)
    assert.ok(gone.every((network) => network.startsWith(nth(0).slice(0, 5))))
  })

test('in a wide network the one gives way that has the most there', () => {
  const { gone, send } = aRoom()
  for (let n = 0; n < MANY - 10; n++) send(`2001:db8:1:${n.toString(16)}::/64`, 2 * MIB)
  send('2001:db8:2:1::/64', 20 * MIB)
  send('2001:db8:3:1::/64', 10 * MIB)
  assert.deepEqual([gone.length, gone.filter((network) => !network.startsWith('2001:db8:1:'))], [5, []])
})

test('nobody gives way to whoever would have more himself, also not to the first piece of a body', () => {
  const inFlight = createBytesInFlight({ org: 4 * MIB, all: 4 * MIB }, { scope: 'address' })
  const gone: string[] = []
  const waiting = (org: string, bytes: number) => {
    const holding = inFlight.hold('198.51.100.7', () => assert.fail('it is whole'))
    holding.take(bytes)
    holding.whole()
    holding.countFor(org)
    return holding.wait(() => gone.push(org))
  }
  const begin = waiting('seated', 2 * MIB)
  begin()
  waiting('little', MIB / 4)
  // As a replay asks, which has all of it at once.
  const replay = inFlight.hold('seated')
  replay.countFor('seated')
  assert.throws(() => replay.take(2 * MIB), { code: 'UNAVAILABLE' })
  assert.throws(() => inFlight.hold('192.0.2.1', () => {}).take(3 * MIB), { code: 'UNAVAILABLE' })
  assert.deepEqual(gone, [])
  waiting('much', 1.5 * MIB)
  // One of the same org does not give way to it either, nor one that has more in a wide network of others.
  const second = inFlight.hold('much')
  second.countFor('much')
  assert.throws(() => second.take(MIB), { code: 'UNAVAILABLE' })
  inFlight.hold('192.0.2.1', () => {}).take(MIB)
  assert.deepEqual(gone, ['much'])
})

test('of those that wait in an org the last one gives way, and the first keeps its turn', () => {
  const gone: string[] = []
  const inFlight = createBytesInFlight({ org: 8 * MIB, all: 8 * MIB }, { scope: 'address' })
  const waiting = (name: string) => {
    const holding = inFlight.hold('198.51.100.7', () => assert.fail('it is whole'))
    holding.take(MIB)
    holding.whole()
    holding.countFor('org')
    return holding.wait(() => gone.push(name))
  }
  const ends = Array.from({ length: 8 }, (_, n) => waiting(String(n)))
  for (const n of [0, 7]) ends[n]!()
  for (let n = 0; n < 2; n++) inFlight.hold('192.0.2.1', () => {}).take(MIB)
  assert.deepEqual(gone, ['6', '5'])
})

test('what does not count gives no way', () => {
  const inFlight = createBytesInFlight({ org: 4 * MIB, all: 4 * MIB }, { scope: 'address' })
  const replay = inFlight.hold('org')
  replay.countFor('org')
  replay.take(MIB / 32)
  replay.wait(() => assert.fail('it gives no room'))
  const other = inFlight.hold('org')
  other.countFor('org')
  other.take(3 * MIB)
  assert.throws(() => inFlight.hold('192.0.2.1', () => {}).take(2 * MIB), { code: 'UNAVAILABLE' })
})
