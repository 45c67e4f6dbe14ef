import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Arbitrary, array, assert as check, integer, property } from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { mostServed, someServed } from '../../matching/max-flow.ts'

/** Every way to put every unit somewhere or nowhere. */
function byTrying(wants: number[], rooms: number[], fits: number[][]): number {
  const want = wants.findIndex((amount) => amount > 0)
  if (want === -1) return 0
  const less = wants.with(want, wants[want]! - 1)
  const skipped = byTrying(wants.with(want, 0), rooms, fits)
  return rooms.reduce((best, left, room) => {
    if (left === 0 || fits[want]![room] === 0) return best
    const taken = fits.map((row, at) => (at === want ? row.with(room, row[room]! - 1) : row))
    return Math.max(best, 1 + byTrying(less, rooms.with(room, left - 1), taken))
  }, skipped)
}

const small = integer({ min: 0, max: 3 })
const three = <T>(of: Arbitrary<T>) => array(of, { minLength: 3, maxLength: 3 })

test('as much is served as is by the best of all ways', (t) => {
  check(
    property(three(small), three(small), three(three(small)), (wants, rooms, fits) => {
      const served = mostServed(wants, rooms, (want, room) => fits[want]![room]!)
      assert.equal(served, byTrying(wants, rooms, fits))
    }),
    { numRuns: 300, ...repeatable(t) },
  )
})

test('what is served at least is at most what can be, and half of it', (t) => {
  check(
    property(three(small), three(small), three(three(small)), (wants, rooms, fits) => {
      const fit = (want: number, room: number) => fits[want]![room]!
      const [some, most] = [someServed(wants, rooms, fit), mostServed(wants, rooms, fit)]
      assert.ok(some <= most && some * 2 >= most, `${some} of ${most}`)
    }),
    { numRuns: 300, ...repeatable(t) },
  )
})

// A flow over 400 lines and 300 rooms took 0.4 s for each who asked, and stopped everybody.
test('each pair of very many is looked at once', () => {
  let looks = 0
  const count = 500
  const all = Array.from({ length: count }, (_, i) => i + 1)
  const served = someServed(all, all, (want, room) => {
    looks++
    return want % 7 === room % 7 ? 1 : 0
  })
  assert.ok(served > 0)
  assert.ok(looks <= count * count)
})

test('who fits anywhere makes place for who fits in one room only', () => {
  assert.equal(
    mostServed([4, 4], [4, 4], (want, room) => (want === 0 || room === 0 ? 4 : 0)),
    8,
  )
  assert.equal(
    mostServed([], [3], () => 1),
    0,
  )
  assert.equal(
    mostServed([3], [], () => 1),
    0,
  )
})
