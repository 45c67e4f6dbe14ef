// Large frames to an agent: the answers to its heartbeats stand behind one of them at most.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { end, anAgent, returned, start, takeNext } from '../_kit/agent.ts'
import { calls, goesOn, parked } from '../_kit/journal.ts'
import { journalStage } from '../_kit/journal-crew.ts'

const { current, begun } = journalStage([{ slug: 'any' }, { slug: 'child' }])

test('results of 1 MB all reach their parent', async (t) => {
  const { c, link } = current()
  const parent = await begun()
  const tellLarge = t.mock.method(c.deps.sockets, 'tellLarge')
  const count = 6
  const asked = Array.from({ length: count }, (_, i) => calls(i + 1, 'child'))
  await link.report(parent, 2, ...asked, parked('child'))
  const other = await anAgent(c)
  const otherLink = await other.connect()
  for (let n = 0; n < count; n++) {
    const child = await takeNext(other, otherLink)
    await otherLink.report(child, 1, start(), end(returned('x'.repeat(1_000_000)), 1))
  }
  const got = new Set<number>()
  await until('all results are told', async () => {
    const wake = await link.next('wake')
    for (const run of wake.runs) for (const { n } of run.completions) got.add(n)
    return got.size === count
  })
  assert.ok(tellLarge.mock.callCount() >= count)
  other.close()
  await link.report(parent, count + 3, goesOn(), end(returned(null), 1))
})

test('while one is on its way no other is sent, and a small one is', async () => {
  const { c, agent } = current()
  const { sockets } = c.deps
  const frame: CoordinatorFrame = { t: 'wake', runs: [] }
  assert.equal(sockets.tellLarge(agent.id, frame), true)
  await sockets.largeRead(agent.id)
  assert.equal(sockets.isReadingLarge(agent.id), false)
  assert.equal(sockets.tellLarge(agent.id, frame), true)
  assert.deepEqual([sockets.isReadingLarge(agent.id), sockets.tellLarge(agent.id, frame)], [true, false])
  assert.equal(sockets.tell(agent.id, frame), true)
  await sockets.largeRead(agent.id)
  assert.equal(sockets.tellLarge('run_none', frame), false)
})
