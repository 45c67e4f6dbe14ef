import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { readInTurns } from '../../../run/hosts/read-in-turns.ts'

const KIB = 1024

/** As work that takes longer than a turn. */
function work(): void {
  for (const end = performance.now() + 6; performance.now() < end;);
}

test('others have their turns while what a program has written is worked off', async () => {
  const pipe = new PassThrough({ highWaterMark: 1024 * KIB })
  const given = Buffer.from(Array.from({ length: 100 * KIB }, (_, i) => i % 251))
  const pieces: Buffer[] = []
  let turns = 0
  const turnsBefore: number[] = []
  readInTurns(pipe, (bytes) => {
    pieces.push(bytes)
    turnsBefore.push(turns)
    work()
  })
  let next = setImmediate(function count() {
    turns += 1
    next = setImmediate(count)
  })
  pipe.end(given)
  await once(pipe, 'end')
  clearImmediate(next)
  assert.deepEqual(Buffer.concat(pieces), given)
  assert.ok(pieces.every(({ length }) => length <= 16 * KIB))
  assert.equal(
    new Set(turnsBefore).size,
    turnsBefore.length,
    `turns of others before each piece: ${turnsBefore.join()}`,
  )
})

test('whoever takes what was read may have it stop in the middle of a chunk', async () => {
  const pipe = new PassThrough({ highWaterMark: 1024 * KIB })
  const pieces: number[] = []
  const reader = readInTurns(pipe, ({ length }) => {
    pieces.push(length)
    if (pieces.length === 1) reader.pause()
  })
  const paused = once(pipe, 'pause')
  pipe.end(Buffer.alloc(40 * KIB))
  await paused
  assert.deepEqual(pieces, [16 * KIB])
  reader.resume()
  await once(pipe, 'end')
  assert.deepEqual(pieces, [16 * KIB, 16 * KIB, 8 * KIB])
})

test('one that is paused stays so when the turn of others is over', async () => {
  const pipe = new PassThrough({ highWaterMark: 1024 * KIB })
  const pieces: number[] = []
  const reader = readInTurns(pipe, ({ length }) => {
    pieces.push(length)
    work()
    if (pieces.length === 1) reader.pause()
  })
  const paused = once(pipe, 'pause')
  pipe.end(Buffer.alloc(20 * KIB))
  await paused
  for (let n = 0; n < 10; n++) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(pieces, [16 * KIB])
  reader.resume()
  await once(pipe, 'end')
  assert.deepEqual(pieces, [16 * KIB, 4 * KIB])
})
