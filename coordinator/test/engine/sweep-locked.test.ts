// An org may hold the locks of its runs for long: nobody else's leases wait for these.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { anAgent, start } from '../_kit/agent.ts'
import { ageLeases, ageTimers, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { parked, sleeps } from '../_kit/journal.ts'
import { until } from '../_kit/until.ts'
import { accepted } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
})
after(() => c.stop())

/** A run of an org of its own in execution. */
async function begun(slug: string) {
  const ofIts = asOwner(c, await anOrg(c, slug))
  await aWorkflow(ofIts, { slug: 'any' })
  const agent = await anAgent(ofIts)
  const link = await agent.connect([])
  await aRun(ofIts, { workflow: 'any' })
  const offer = await accepted({ c: ofIts, agent, link })
  await link.report(offer, 1, start())
  return { ofIts, offer, link }
}

/** The same, on an agent that is gone then. */
async function left(slug: string): Promise<{ run: string; ofIts: TestCoordinator }> {
  const { ofIts, offer, link } = await begun(slug)
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

test('sleeps of others are over in time while an org holds a run whose sleep is', async () => {
  const [locked, other] = [await asleep('sleeps-locked'), await asleep('sleeps-other')]
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${locked} for update`
    await ageTimers(c, locked, other)
    await until('the sleep of the other is over', async () => (await sleepsOf(other)) === 0)
    assert.equal(await sleepsOf(locked), 1)
  })
  await until('it is over once it is free', async () => (await sleepsOf(locked)) === 0)
})

/** A run of an org of its own, which sleeps. */
async function asleep(slug: string): Promise<string> {
  const { ofIts, offer, link } = await begun(slug)
  await link.report(offer, 2, sleeps(1, 3_600_000), parked('sleep'))
  await until('it sleeps', async () => (await runOf(ofIts, offer.run)).status === 'sleeping')
  return offer.run
}

const sleepsOf = async (run: string) => (await c.db`select from timers where run_id = ${run} and kind = 'sleep'`).length
