import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDownloadSeats } from '../../limits/download-seats.ts'

const FULL = { code: 'UNAVAILABLE' }

test('a network has so many downloads, all have so many, and a seat is free again after its download', () => {
  const seats = createDownloadSeats({ most: 3, mostOfOne: 2 })
  const take = (address: string) => seats.take(address, () => assert.fail(`${address} gave way`))
  const own = [take('192.0.2.1'), take('192.0.2.1')]
  assert.throws(() => take('192.0.2.1'), FULL)
  const other = take('2001:db8::1')
  // Of IPv6 one customer has a whole /64, so an address is nobody.
  assert.throws(() => take('2001:db8::2'), FULL)
  own[0]!.leave()
  own[0]!.leave()
  take('2001:db8::3')
  assert.throws(() => take('2001:db8::4'), FULL)
  own[1]!.leave()
  other.leave()
  take('192.0.2.2')
})

test('readers of few networks who keep all seats give way to those of others, the oldest first', () => {
  const seats = createDownloadSeats({ most: 4, mostOfOne: 3 })
  const cut: string[] = []
  const take = (address: string, name = address) => seats.take(address, () => cut.push(name))
  const own = ['first', 'second', 'third'].map((name) => take('192.0.2.1', name))
  take('192.0.2.2')
  take('192.0.2.3')
  assert.deepEqual(cut, ['first'])
  take('192.0.2.4')
  assert.deepEqual(cut, ['first', 'second'])
  // Four networks have one each now.
  assert.throws(() => take('192.0.2.4'), FULL)
  // A download that gave way has nothing to give back.
  own[0]!.leave()
  assert.throws(() => take('192.0.2.4'), FULL)
  own[2]!.leave()
  take('192.0.2.5')
  assert.deepEqual(cut, ['first', 'second'])
})

/** Seats by a clock that is turned by hand. */
function clocked(most: number) {
  let ms = 0
  const cut: string[] = []
  const seats = createDownloadSeats({ most, mostOfOne: 2, now: () => ms })
  let networks = 0
  return {
    cut,
    pass: (seconds: number) => (ms += seconds * 1000),
    /** A download of a network that had none before. */
    begin: (name: string) => seats.take(`192.0.${networks >> 8}.${networks++ & 255}`, () => cut.push(name)),
  }
}

const KB = 1000
/** What the buffers of one machine take at once, though nobody reads. */
const BURST = 2500 * KB

test('of networks with one each, who takes nothing gives way to one without any, whatever went out at first', () => {
  const { begin, cut, pass } = clocked(3)
  const slow = begin('slow')
  for (const name of ['idle', 'idle too']) begin(name).took(BURST)
  for (let s = 0; s < 6; s++) {
    pass(1)
    slow.took(20 * KB)
  }
  begin('new')
  begin('another')
  assert.deepEqual(cut, ['idle', 'idle too'])
})

test('while all are too young for a rate, the one that has taken nothing for longest gives way', () => {
  const { begin, cut, pass } = clocked(3)
  const fast = begin('fast')
  for (const name of ['idle', 'idle too']) begin(name).took(BURST)
  pass(0.1)
  fast.took(KB)
  begin('new')
  pass(0.1)
  begin('another')
  assert.deepEqual(cut, ['idle', 'idle too'])
})

test('newcomers that read nothing get each other out, and no slow reader, whose bytes go out in lumps', () => {
  const { begin, cut, pass } = clocked(8)
  const slow = begin('slow')
  slow.took(4000 * KB)
  pass(10)
  // Before, an idle reader and a slow one are one like the other.
  for (let halves = 0; halves < 240; halves++) {
    if (halves % 28 === 0) slow.took(1400 * KB)
    begin('idle').took(BURST)
    pass(0.5)
  }
  assert.ok(cut.length > 200, String(cut.length))
  assert.ok(!cut.includes('slow'))
})

test('readers that take a little time and again do not keep the seats: the slowest one gives way', () => {
  const { begin, cut, pass } = clocked(3)
  const all = ['20 KB/s', '100 KB/s', '30 KB/s'].map((name) => ({ seat: begin(name), rate: Number.parseInt(name) }))
  for (let s = 0; s < 40; s++) {
    pass(1)
    for (const { seat, rate } of all) seat.took(rate * KB)
  }
  begin('new')
  assert.deepEqual(cut, ['20 KB/s'])
  // It has no rate yet, so another newcomer has its seat before those that read.
  begin('another')
  assert.deepEqual(cut, ['20 KB/s', 'new'])
})

test('what was taken long ago does not count', () => {
  const { begin, cut, pass } = clocked(2)
  const before = begin('before')
  const now = begin('now')
  pass(3)
  before.took(50_000 * KB)
  for (let s = 0; s < 40; s++) {
    pass(1)
    now.took(50 * KB)
  }
  begin('new')
  assert.deepEqual(cut, ['before'])
})
