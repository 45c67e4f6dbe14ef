import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeats } from '../../limits/seats.ts'

/** Asks for seats in turn; answers with who sits, in the order of sitting down. */
function guests(most: { org: number; all: number }) {
  const seats = createSeats(most)
  const seated: { org: string; leave: () => void }[] = []
  const ask = (org: string) => void seats.take(org).then((leave) => seated.push({ org, leave }))
  const who = async () => {
    await new Promise(setImmediate)
    return seated.map(({ org }) => org).join('')
  }
  return { ask, who, leave: (n: number) => seated[n]!.leave() }
}

test('an org has its own number of seats, and the others theirs besides', async () => {
  const { ask, who } = guests({ org: 2, all: 3 })
  for (const org of 'aaaabb') ask(org)
  assert.equal(await who(), 'aab')
})

test('whoever leaves makes room for the next, each org in its turn', async () => {
  const { ask, who, leave } = guests({ org: 2, all: 2 })
  for (const org of 'aaaab') ask(org)
  assert.equal(await who(), 'aa')
  leave(0)
  leave(0)
  assert.equal(await who(), 'aaa')
  leave(1)
  assert.equal(await who(), 'aaab')
  leave(2)
  assert.equal(await who(), 'aaaba')
})
