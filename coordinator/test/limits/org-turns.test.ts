import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { noCredential } from '../../stay.ts'
import { createOrgTurns, READS } from '../../limits/org-turns.ts'

test('an org reads some lists at once, and others need not wait for it', async () => {
  const reads = createOrgTurns({ ...READS, seats: { org: 2, all: 3 } })
  const begun: string[] = []
  const ends: (() => void)[] = []
  const read = (org: string) =>
    reads.run(org, noCredential, () => {
      begun.push(org)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = [read('a'), read('a'), read('a'), read('b')]
  await turn()
  assert.deepEqual(begun, ['a', 'a', 'b'])
  ends[0]!()
  await all[0]
  await turn()
  assert.deepEqual(begun, ['a', 'a', 'b', 'a'])
  for (const end of ends) end()
  await Promise.all(all)
})

test('one that has waited too long is told so, and leaves its seat to the next', async () => {
  const reads = createOrgTurns({ ...READS, seats: { org: 2, all: 3 } }, 1)
  const ends: (() => void)[] = []
  const long = () => reads.run('a', noCredential, () => new Promise<void>((resolve) => ends.push(resolve)))
  const under = [long(), long()]
  await assert.rejects(
    reads.run('a', noCredential, () => assert.fail('it has no seat')),
    { code: 'RATE_LIMITED', detail: { scope: 'org_reads', limit: 2, retryAfterMs: 1000 } },
  )
  for (const end of ends) end()
  await Promise.all(under)
  await reads.run('a', noCredential, () => {})
})

test('a read that fails gives its seat back', async () => {
  const reads = createOrgTurns({ ...READS, seats: { org: 1, all: 1 } })
  const broken = new Error('broken')
  await assert.rejects(
    reads.run('a', noCredential, () => Promise.reject(broken)),
    broken,
  )
  assert.equal(await reads.run('b', noCredential, () => 1), 1)
})

test('what is done at once or not at all takes a free seat, and waits for none', async () => {
  const turns = createOrgTurns({ ...READS, seats: { org: 1, all: 2 } })
  const end = Promise.withResolvers<void>()
  const first = turns.runIfFree('a', () => end.promise)
  assert.equal(await turns.runIfFree('a', () => assert.fail('it has no seat')), false)
  assert.equal(await turns.runIfFree('b', () => Promise.resolve()), true)
  end.resolve()
  assert.equal(await first, true)
  assert.equal(await turns.runIfFree('a', () => Promise.resolve()), true)
})
