// Bodies of which it becomes known whose they are, and that wait.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'

const MIB = 1024 * 1024

test('what is known to be of an org counts for it, and no longer for its address', () => {
  const inFlight = createBytesInFlight({ org: 3 * MIB, all: 20 * MIB }, { scope: 'address' })
  const from = (address: string, bytes: number) => {
    const holding = inFlight.hold(address, () => assert.fail('there is room'))
    holding.take(bytes)
    holding.whole()
    return holding
  }
  const first = from('1', 2 * MIB)
  first.countFor('a')
  from('1', 3 * MIB).countFor('b')
  from('1', 3 * MIB).countFor('c')
  const second = from('2', 1.5 * MIB)
  assert.throws(() => second.countFor('a'), { code: 'RATE_LIMITED', message: /^Deploys of this org may have 3145728/ })
  assert.throws(
    () => from('2', 2 * MIB),
    { code: 'RATE_LIMITED', message: /of this address/ },
    'it counts where it did',
  )
  first.release()
  second.countFor('a')
  from('2', 3 * MIB)
})

test('what waits gives way as what is coming does, of the one with the most, and no more once it has its turn', () => {
  const inFlight = createBytesInFlight({ org: 4 * MIB, all: 8 * MIB }, { scope: 'address' })
  const gone: string[] = []
  const waiting = (orgId: string, name: string, bytes: number) => {
    const holding = inFlight.hold(name, () => assert.fail('it is whole'))
    holding.take(bytes)
    holding.whole()
    holding.countFor(orgId)
    return holding.wait(() => gone.push(name))
  }
  const begin = waiting('a', 'a1', MIB)
  waiting('a', 'a2', MIB)
  waiting('a', 'a3', MIB)
  waiting('b', 'b1', 2 * MIB)
  const coming = inFlight.hold('somewhere', () => {
    gone.push('coming')
    coming.release()
  })
  coming.take(2.5 * MIB)
  begin()
  const asks = inFlight.hold('elsewhere', () => assert.fail('others have more'))
  asks.take(MIB)
  assert.deepEqual(gone, ['a3'])
  asks.take(MIB)
  assert.deepEqual(gone, ['a3', 'coming'], 'which has more than either org')
  asks.whole()
  inFlight.hold('elsewhere').take(2 * MIB)
  for (const address of ['here', 'there']) inFlight.hold(address).take(1.5 * MIB)
  assert.deepEqual(gone.slice(2).toSorted(), ['a2', 'b1'])
  assert.throws(() => inFlight.hold('somebody').take(MIB), { code: 'UNAVAILABLE' }, 'a1 has its turn')
})

test('small ones have room of their own beside large ones', () => {
  const small = { org: 100_000, all: 150_000 }
  const inFlight = createBytesInFlight({ org: 3 * MIB, all: 4 * MIB }, { scope: 'address', small })
  const take = (address: string, bytes: number) => {
    const holding = inFlight.hold(address, () => assert.fail('it is whole'))
    holding.take(bytes)
    holding.whole()
    return holding
  }
  take('a', 3 * MIB)
  const one = take('a', 50_000)
  assert.throws(() => one.take(20_000), { code: 'RATE_LIMITED' }, 'it is small no more')
  take('a', 50_000)
  assert.throws(() => take('a', 1), { code: 'RATE_LIMITED' })
  one.release()
  take('b', MIB - 50_000)
  take('c', 60_000)
  take('d', 60_000)
  assert.throws(() => take('e', 60_000), { code: 'UNAVAILABLE' })
})
