// What agents are told because another coordinator has named them, or may have.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, type Link, type TestAgent } from '../_kit/agent.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function connected(): Promise<{ id: string; link: Link }> {
  const agent = await anAgent(c)
  agents.push(agent)
  return { id: agent.id, link: await agent.connect() }
}

test('an agent that is named while it is looked for is looked for once more', async (t) => {
  const { id, link } = await connected()
  // Asked for once by each look.
  const { mock: looks } = t.mock.method(c.deps.sockets, 'ids')
  await c.db.begin(async (tx) => {
    await tx`lock table runner_intake in access exclusive mode`
    c.deps.tellAll([id])
    await untilBlocked(c.db, '%runner_intake%')
    for (let n = 0; n < 10; n++) c.deps.tellAll([id])
    assert.equal(looks.callCount(), 1)
  })
  for (let n = 0; n < 2; n++) await link.next('intake')
  assert.equal(looks.callCount(), 2)
})

test('everybody is told, however many are connected', async () => {
  const links = await Promise.all(Array.from({ length: 60 }, async () => (await connected()).link))
  c.deps.tellEverybody()
  for (const link of links) await link.next('intake')
})

test('what cannot be looked up holds nothing else up, and the next look may find it', async () => {
  const { id, link } = await connected()
  await c.db`alter table runs rename to elsewhere`
  c.deps.tellAll([id])
  await link.next('intake')
  await c.db`alter table elsewhere rename to runs`
  c.deps.tellAll([id])
  await link.next('intake')
})
