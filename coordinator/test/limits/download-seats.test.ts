import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDownloadSeats } from '../../limits/download-seats.ts'

const FULL = { code: 'UNAVAILABLE' }

test('an address has so many downloads, all have so many, and a seat is free again after its download', () => {
  const seats = createDownloadSeats({ most: 3, mostOfOne: 2 })
  const leave = [seats.take('a'), seats.take('a')]
  assert.throws(() => seats.take('a'), FULL)
  const leaveOther = seats.take('b')
  assert.throws(() => seats.take('c'), FULL)
  leave[0]!()
  assert.throws(() => {
    seats.take('a')
    seats.take('c')
  }, FULL)
  leave[1]!()
  leaveOther()
  seats.take('c')
})
