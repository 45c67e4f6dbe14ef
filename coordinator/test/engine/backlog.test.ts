import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBacklog } from '../../engine/commit/backlog.ts'

const BEHIND_MS = 2000

test('what was under way when the database was lost is behind until all of it has settled', async () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  const [first, second, later] = [1, 2, 3].map(() => Promise.withResolvers<void>())
  const tracked = [backlog.track(first!.promise), backlog.track(second!.promise)]
  assert.equal(backlog.isThere(), false)
  backlog.lost()
  now += BEHIND_MS
  backlog.works()
  void backlog.track(later!.promise)
  first!.resolve()
  await tracked[0]
  assert.equal(backlog.isThere(), true)
  second!.reject(new Error('its agent comes again'))
  await assert.rejects(tracked[1]!)
  assert.equal(backlog.isThere(), false)
})

test('a moment after a loss counts as well, for what others have', () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  backlog.lost()
  now += BEHIND_MS - 1
  assert.equal(backlog.isThere(), true)
  now += 1
  assert.equal(backlog.isThere(), false)
})

test('what comes while the database is away is behind as well', async () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  const [line, end] = [1, 2].map(() => Promise.withResolvers<void>())
  const taken = backlog.track(line!.promise)
  backlog.lost()
  now += BEHIND_MS
  const ended = backlog.track(end!.promise)
  backlog.works()
  line!.resolve()
  await taken
  assert.equal(backlog.isThere(), true)
  end!.resolve()
  await ended
  assert.equal(backlog.isThere(), false)
})

test('what others have counts for a moment, and is not told on as ours', () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  backlog.ofOthers(500)
  now += BEHIND_MS - 501
  assert.deepEqual([backlog.isThere(), backlog.isOwn()], [true, false])
  backlog.ofOthers(BEHIND_MS - 1)
  now += 1
  assert.equal(backlog.isThere(), false)
})

test('what is slow for reasons of its own holds nobody up for long once the database works', () => {
  let now = 10_000
  const backlog = createBacklog(() => now)
  void backlog.track(new Promise(() => {}))
  backlog.lost()
  now += 60_000
  assert.equal(backlog.isThere(), true)
  backlog.works()
  now += 9999
  backlog.works()
  assert.equal(backlog.isThere(), true)
  now += 1
  assert.equal(backlog.isThere(), false)
})
