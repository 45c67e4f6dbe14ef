// An org may hold the locks of its runs for long: nobody else's leases wait for these.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { anAgent, start } from '../_kit/agent.ts'
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { accepted } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
})
after(() => c.stop())

/** A run of an org of its own in execution, on an agent that is gone then. */
async function left(slug: string): Promise<{ run: string; ofIts: TestCoordinator }> {
  const ofIts = asOwner(c, await anOrg(c, slug))
  await aWorkflow(ofIts, { slug: 'any' })
  const agent = await anAgent(ofIts)
  const link = await agent.connect([])
  await aRun(ofIts, { workflow: 'any' })
  const offer = await accepted({ c: ofIts, agent, link })
  await link.report(offer, 1, start())
  link.close()
  return { run: offer.run, ofIts }
}

test('leases of others are judged, and pulses go on, while an org holds a run whose lease is over', async () => {
  const locked = await left('locks')
  const other = await left('other')
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${locked.run} for update`
    await ageLeases(c, locked.run, other.run)
    await until('the other is lost', async () => (await runOf(other.ofIts, other.run)).attempt === 2)
    await moment('pulse.done')
    assert.equal((await runOf(locked.ofIts, locked.run)).attempt, 1)
  })
  await until('it is lost once it is free', async () => (await runOf(locked.ofIts, locked.run)).attempt === 2)
})
