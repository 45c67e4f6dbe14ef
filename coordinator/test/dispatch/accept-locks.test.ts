// An acceptance waits for a placement that its own org has locked; acceptances of others do not wait along.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, end, returned, start, type TestAgent } from '../_kit/agent.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { anOrg, aCoordinatorOfItsOwn, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

async function anOffer(of: TestCoordinator, agent: TestAgent) {
  const { slug } = await aWorkflow(of)
  await aRun(of, { workflow: slug })
  const [offer] = await agent.poll()
  assert.ok(offer)
  return offer
}

test('while a placement of one org is locked, agents of others accept what they are offered', async () => {
  const other = asOwner(c, await anOrg(c))
  const [agent, theirs] = [await anAgent(c), await anAgent(other)]
  const [link, theirLink] = [await agent.connect(), await theirs.connect()]
  const [offer, theirOffer] = [await anOffer(c, agent), await anOffer(other, theirs)]
  let accepted: Promise<unknown> = Promise.resolve()
  await c.db.begin(async (tx) => {
    await tx`select from placements where run_id = ${offer.run} for update`
    accepted = link.accept(offer)
    await untilBlocked(c.db, '%update placements%')
    await theirLink.accept(theirOffer)
    await theirLink.report(theirOffer, 1, start(), end(returned(1)))
    assert.equal((await runOf(other, theirOffer.run)).status, 'completed')
  })
  await accepted
  await link.report(offer, 1, start(), end(returned(1)))
  assert.equal((await runOf(c, offer.run)).status, 'completed')
})
