// Rows of a run may be held for long: no other leases wait for these.
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

for (const table of ['runs', 'placements'] as const)
  test(`leases of the same org are judged while a row of one of its runs is held: in ${table}`, async () => {
    const { ofIts, offer, link } = await begun(`same-${table}`)
    link.close()
    const others = [await anotherLeft(ofIts), await anotherLeft(ofIts), await anotherLeft(ofIts)]
    let free = await hold('runs', offer.run)
    await ageLeases(c, offer.run, ...others)
    if (table === 'placements') {
      const ofRun = free
      free = await hold(table, offer.run)
      await ofRun()
    }
    await until('the others are lost', async () => (await attemptsOf(ofIts, others)).every((attempt) => attempt === 2))
    assert.equal((await runOf(ofIts, offer.run)).attempt, 1)
    await free()
    await until('it is lost once it is free', async () => (await runOf(ofIts, offer.run)).attempt === 2)
  })

test('children of an org are lost while the parent of one of them is held', async () => {
  const { ofIts, offer, link } = await begun('same-parent')
  link.close()
  const [parent, other] = [await anotherLeft(ofIts), await anotherLeft(ofIts)]
  await c.db`update runs set parent_run_id = ${parent} where id = ${offer.run}`
  const free = await hold('runs', parent)
  await ageLeases(c, offer.run, other)
  await until('the other is lost', async () => (await runOf(ofIts, other)).attempt === 2)
  assert.equal((await runOf(ofIts, offer.run)).attempt, 1)
  await free()
  await until('it is lost once its parent is free', async () => (await runOf(ofIts, offer.run)).attempt === 2)
})

/** Locks the row until what it answers is called. */
async function hold(table: 'runs' | 'placements', run: string): Promise<() => Promise<void>> {
  const [held, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const over = c.db.begin(async (tx) => {
    if (table === 'runs') await tx`select from runs where id = ${run} for update`
    else await tx`select from placements where run_id = ${run} for update`
    held.resolve()
    await end.promise
  })
  await held.promise
  return async () => {
    end.resolve()
    await over
  }
}

/** One more run of this org, on an agent that is gone then. */
async function anotherLeft(ofIts: TestCoordinator): Promise<string> {
  const agent = await anAgent(ofIts)
  const link = await agent.connect([])
  await aRun(ofIts, { workflow: 'any' })
  const offer = await accepted({ c: ofIts, agent, link })
  await link.report(offer, 1, start())
  link.close()
  return offer.run
}

const attemptsOf = (ofIts: TestCoordinator, runs: string[]) =>
  Promise.all(runs.map(async (run) => (await runOf(ofIts, run)).attempt))

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
