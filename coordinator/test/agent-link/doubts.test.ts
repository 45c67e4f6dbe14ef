import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrgId, RunnerId } from '@windlass/shared/ids.ts'
import { createDoubts } from '../../agent-link/doubts.ts'

const RUNNER = aRunner('org_1')

function aRunner(orgId: string) {
  return { id: `rnr_of_${orgId}` as RunnerId, orgId: orgId as OrgId }
}

test('a boot is a clone when the one before is heard again for longer than late words can come', () => {
  let now = 0
  const doubts = createDoubts({ now: () => now })
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
  now = 20_000
  assert.equal(doubts.isClone(RUNNER, 'two', 10_000), false, 'heard 10 s after it asked first')
  assert.equal(doubts.isClone(RUNNER, 'two', 4000), true)
  assert.equal(doubts.isClone(RUNNER, 'three', 0), false, 'each boot is asked about for itself')
  assert.equal(doubts.isClone(RUNNER, 'two', Infinity), false)
})

test('a boot that does not come again is forgotten', () => {
  let now = 0
  const doubts = createDoubts({ now: () => now })
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
  now = 600_000
  assert.equal(doubts.isClone(RUNNER, 'two', 0), false)
})

test('one that was heard at a time which is still to come is none: the clock of the database was ahead', () => {
  const doubts = createDoubts({ now: () => 0 })
  assert.equal(doubts.isClone(RUNNER, 'two', -600_000), false)
})

test('of the boots that one org says only so many are remembered, the last of them', () => {
  let now = 0
  const doubts = createDoubts({ now: () => now })
  const boots = Array.from({ length: 30_000 }, (_, i) => `boot ${i}`)
  for (const boot of boots) doubts.isClone(RUNNER, boot, 0)
  now = 20_000
  const known = boots.toReversed().filter((boot) => doubts.isClone(RUNNER, boot, 0))
  assert.equal(known.length, 20_000)
  assert.equal(known.at(-1), 'boot 10000')
})

test('the org with most boots loses its oldest, and no other org one', () => {
  let now = 0
  const doubts = createDoubts({ now: () => now, most: 6 })
  const ask = (org: string, boot: string) => doubts.isClone(aRunner(org), boot, 0)
  ask('few', 'first')
  for (let i = 1; i <= 5; i++) ask('many', `${i}`)
  ask('new', 'only')
  ask('few', 'second')
  now = 20_000
  const known = [['few', 'first'], ['few', 'second'], ['new', 'only'], ...['5', '4', '3'].map((boot) => ['many', boot])]
  for (const [org, boot] of known) assert.equal(ask(org!, boot!), true, `${boot} of ${org}`)
  assert.equal(ask('many', '2'), false)
})

test('what was forgotten makes room for others', () => {
  let now = 0
  const doubts = createDoubts({ now: () => now, most: 2 })
  const ask = (org: string, boot: string) => doubts.isClone(aRunner(org), boot, 0)
  for (const boot of ['1', '2']) ask('early', boot)
  now = 600_000
  for (const boot of ['1', '2', '3']) ask('late', boot)
  now = 620_000
  assert.deepEqual(
    ['3', '2', '1'].map((boot) => ask('late', boot)),
    [true, true, false],
  )
})
