// Runs with large journals that end at the same moment: what others wait for is bounded.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { applyBatches } from '../../engine/commit/apply.ts'
import { anAgent, end, line, returned, start, takeNext } from '../_kit/agent.ts'
import { aCoordinator, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('runs whose journals are large together do not end in one transaction, and all of them end', async () => {
  const { slug } = await aWorkflow(c)
  const agent = await anAgent(c)
  const link = await agent.connect()
  const offers = []
  for (let n = 0; n < 3; n++) {
    await aRun(c, { workflow: slug })
    const offer = await takeNext(agent, link)
    await link.report(offer, 1, start())
    offers.push(offer)
  }
  const ids = offers.map(({ run }) => run)
  await c.db`update runs set entries = 3000 where id = any(${ids})`
  const ofAgent = { first: 2, runnerId: agent.id, orgId: c.orgId, commands: new Map(), outputs: new Map() }
  const ends = offers.map(({ run, epoch }) => ({ ...ofAgent, run, epoch, entries: [end(returned(1))] }))
  await assert.rejects(applyBatches(c.deps, ends), /more than 5000 entries together/)
  // What an agent says after an end changes nothing of it.
  const hidden = ends.map((batch) => ({ ...batch, entries: [...batch.entries, line('too late')] }))
  await assert.rejects(applyBatches(c.deps, hidden), /more than 5000 entries together/)
  await Promise.all(offers.map((offer) => link.report(offer, 2, end(returned(1)))))
  for (const id of ids) assert.equal((await runOf(c, id)).status, 'completed')
})
