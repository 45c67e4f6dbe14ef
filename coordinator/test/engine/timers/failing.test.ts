import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { hear } from '../../_kit/ageing.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { goesOn, parked, sleeps, wakeOf } from '../../_kit/journal.ts'
import { until, untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' })
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

test('a timer that cannot be fired does not hold up those behind it, and is tried again later', async (t) => {
  t.mock.method(process.stderr, 'write', () => true)
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const [broken] = await c.db<{ versionId: string }[]>`select version_id from runs where id = ${offer.run}`
  await c.db`update runs set version_id = 'ver_gone' where id = ${offer.run}`
  await hear(c, offer.run)
  await c.db`
    insert into timers (run_id, org_id, kind, due_at)
    values (${offer.run}, ${c.orgId}, 'wall-timeout', now() - interval '1 minute')`
  c.deps.floors.timers.lower(Date.now() - 120_000)
  await aRun(c, { workflow: 'any' })
  const behind = await takeNext(agent, link)
  await link.report(behind, 2, sleeps(1, 0), parked('sleep'))
  assert.equal((await wakeOf(link, behind)).completions.length, 1)
  const later = await until('the broken timer to be put off', async () => {
    const [row] = await c.db<
      { isLater: boolean }[]
    >`select due_at > now() as is_later from timers where run_id = ${offer.run}`
    return row!.isLater
  })
  assert.equal(later, true)
  await c.db`update runs set version_id = ${broken!.versionId} where id = ${offer.run}`
  await link.report(behind, 4, goesOn(), end(returned(null), 1))
  await link.report(offer, 2, end(returned(null), 1))
  assert.equal((await runOf(c, offer.run)).status, 'completed')
})

test('a timer that takes too long to fire is put off alone', async (t) => {
  t.mock.method(process.stderr, 'write', () => true)
  await c.db.unsafe(`
    create function takes_too_long() returns trigger language plpgsql as $$
    begin
      raise exception using errcode = 'query_canceled', message = 'canceling statement due to statement timeout';
    end $$`)
  const offers: Awaited<ReturnType<typeof takeNext>>[] = []
  for (let i = 0; i < 3; i++) {
    await aRun(c, { workflow: 'any' })
    offers.push(await takeNext(agent, link))
  }
  await c.db.unsafe(`
    create trigger takes_too_long before delete on timers
    for each row when (old.run_id = '${offers[1]!.run}') execute function takes_too_long()`)
  // Due a moment later, in one look.
  for (const offer of offers) await link.report(offer, 2, sleeps(1, 300), parked('sleep'))
  for (const offer of [offers[0]!, offers[2]!]) {
    assert.equal((await wakeOf(link, offer)).completions.length, 1)
    await link.report(offer, 4, goesOn(), end(returned(null), 1))
  }
  const isLater = async () => {
    const rows = await c.db`select 1 from timers where run_id = ${offers[1]!.run} and due_at > now() + interval '30 s'`
    return rows.length === 1
  }
  await untilPolled('the slow timer to be put off', isLater)
  await c.db`drop function takes_too_long cascade`
  await c.db`update timers set due_at = now() where run_id = ${offers[1]!.run}`
  c.deps.timers.expect(0)
  assert.equal((await wakeOf(link, offers[1]!)).completions.length, 1)
  await link.report(offers[1]!, 4, goesOn(), end(returned(null), 1))
})
