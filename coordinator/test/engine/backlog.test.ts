import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBacklog } from '../../engine/commit/backlog.ts'

test('what was under way when the database was lost is behind until all of it has settled', async () => {
  const backlog = createBacklog()
  const [first, second, later] = [1, 2, 3].map(() => Promise.withResolvers<void>())
  const tracked = [backlog.track(first!.promise), backlog.track(second!.promise)]
  assert.equal(backlog.isThere(), false)
  backlog.lost()
  void backlog.track(later!.promise)
  first!.resolve()
  await tracked[0]
  assert.equal(backlog.isThere(), true)
  second!.reject(new Error('its agent comes again'))
  await assert.rejects(tracked[1]!)
  assert.equal(backlog.isThere(), false)
})
