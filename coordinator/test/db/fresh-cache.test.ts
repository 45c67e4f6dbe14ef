import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { createFreshCache } from '../../db/fresh-cache.ts'

test('where reading fails as it is allowed to, the last answer serves on until it is forgotten', async () => {
  const away = new Error('away')
  const answers: (() => Promise<string>)[] = [
    // For longer than it is fresh.
    () => pause(20).then(() => 'first'),
    () => Promise.reject(away),
    () => Promise.reject(new Error('broken')),
    () => Promise.reject(away),
  ]
  const cache = createFreshCache<string, string>({
    read: () => answers.shift()!(),
    freshMs: 1,
    most: 10,
    mayBeOld: (error) => error === away,
  })
  assert.equal(await cache.of('a'), 'first')
  await pause(20)
  assert.equal(await cache.of('a'), 'first')
  await pause(20)
  await assert.rejects(cache.of('a'), /broken/)
  cache.forget('a')
  await assert.rejects(cache.of('a'), /away/)
  assert.equal(answers.length, 0)
})

test('what is forgotten while it is read does not serve on', async () => {
  const reading = Promise.withResolvers<string>()
  const answers = [() => reading.promise, () => Promise.reject(new Error('away'))]
  const cache = createFreshCache<string, string>({
    read: () => answers.shift()!(),
    freshMs: 60_000,
    most: 10,
    mayBeOld: () => true,
  })
  const asked = cache.of('a')
  cache.forget('a')
  reading.resolve('of before the change')
  await asked
  await assert.rejects(cache.of('a'), /away/)
})
