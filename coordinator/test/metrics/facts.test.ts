import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../db/client.ts'
import { createFactReader } from '../../metrics/facts.ts'
import type { Facts } from '../../metrics/store.ts'

const someFacts = (inputsOpen: number) => ({ inputsOpen }) as Facts

/** A reader whose looks end when the test says so. */
function aReader() {
  const looks: PromiseWithResolvers<Facts>[] = []
  const read = createFactReader({} as Db, () => {
    const look = Promise.withResolvers<Facts>()
    looks.push(look)
    return look.promise
  })
  const begin = async (known: number) => {
    const answer = read()
    looks[0]!.resolve(someFacts(known))
    assert.equal((await answer).facts.inputsOpen, known)
  }
  return { looks, read, begin }
}

test('while the database is asked anew, whoever asks is told what it said before, and how old that is', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const { looks, read, begin } = aReader()
  await begin(1)
  now = 4000
  assert.deepEqual(await read(), { facts: someFacts(1), ageMs: 4000 })
  now = 60_000
  const slow = read()
  assert.equal(looks.length, 2)
  t.mock.timers.tick(1000)
  assert.deepEqual(await slow, { facts: someFacts(1), ageMs: 60_000 })
  const later = read()
  looks[1]!.resolve(someFacts(2))
  assert.deepEqual(await later, { facts: someFacts(2), ageMs: 0 })
})

test('a database that refuses is not answered for', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const { looks, read, begin } = aReader()
  await begin(1)
  now = 60_000
  const refused = read()
  looks[1]!.reject(new Error('no'))
  await assert.rejects(refused, /no/)
  const again = read()
  t.mock.timers.tick(1000)
  looks[2]!.resolve(someFacts(3))
  assert.equal((await again).facts.inputsOpen, 3)
})
