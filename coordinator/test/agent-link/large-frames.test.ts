// Large frames to an agent: the answers to its heartbeats stand behind one of them at most.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { end, anAgent, type Link, returned, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, goesOn, parked } from '../_kit/journal.ts'
import { journalCrew } from '../_kit/journal-crew.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'child' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun } = journalCrew(() => ({ c, agent, link }), 'any')

test('results of 1 MB reach a parent one after the other, each once', async (t) => {
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
