import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDownloadSeats } from '../../limits/download-seats.ts'

const FULL = { code: 'UNAVAILABLE' }

test('a network has so many downloads, all have so many, and a seat is free again after its download', () => {
  const seats = createDownloadSeats({ most: 3, mostOfOne: 2 })
  const take = (address: string) => seats.take(address, () => assert.fail(`${address} gave way`))
  const leave = [take('192.0.2.1'), take('192.0.2.1')]
  assert.throws(() => take('192.0.2.1'), FULL)
  const leaveOther = take('2001:db8::1')
  // Of IPv6 one customer has a whole /64, so an address is nobody.
  assert.throws(() => take('2001:db8::2'), FULL)
  leave[0]!()
  leave[0]!()
  take('2001:db8::3')
  assert.throws(() => take('2001:db8::4'), FULL)
  leave[1]!()
  leaveOther()
  take('192.0.2.2')
})

test('readers of few networks who keep all seats give way to those of others, the oldest first', () => {
  const seats = createDownloadSeats({ most: 4, mostOfOne: 3 })
  const cut: string[] = []
  const take = (address: string, name = address) => seats.take(address, () => cut.push(name))
  const leaves = ['first', 'second', 'third'].map((name) => take('192.0.2.1', name))
  take('192.0.2.2')
  take('192.0.2.3')
  assert.deepEqual(cut, ['first'])
  take('192.0.2.4')
  assert.deepEqual(cut, ['first', 'second'])
  // Four networks have one each now.
  assert.throws(() => take('192.0.2.5'), FULL)
  assert.throws(() => take('192.0.2.4'), FULL)
  // A download that gave way has nothing to give back.
  leaves[0]!()
  assert.throws(() => take('192.0.2.5'), FULL)
  leaves[2]!()
  take('192.0.2.5')
  assert.deepEqual(cut, ['first', 'second'])
})
