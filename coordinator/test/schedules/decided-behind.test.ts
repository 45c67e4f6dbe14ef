// Ticks that take long to decide are decided behind those of other orgs, which are written meanwhile.
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { aMovableCoordinator, aSchedule, copiesOf, firedBy, nowOf } from '../_kit/schedules.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

/** The schedule of a new org. */
async function ofNewOrg(): Promise<{ org: TestCoordinator; schedule: Schedule }> {
  const org = asOwner(c, await anOrg(c))
  const { slug } = await aWorkflow(org)
  return { org, schedule: await aSchedule(org, { workflow: slug, rate: '1h' }) }
}

/** What is given to runs of this org is judged once `open` is called. */
function holdJudging(t: TestContext, { deps }: Pick<TestCoordinator, 'deps'>, { orgId }: TestCoordinator) {
  const judge = deps.judge.judge.bind(deps.judge)
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  let begun = 0
  t.mock.method(deps.judge, 'judge', async (...ask: Parameters<typeof judge>) => {
    if (ask[2].org === orgId) {
      begun++
      announce()
      await opened
    }
    return judge(...ask)
  })
  return { open, begun: () => begun }
}

async function goOnTo(at: number): Promise<void> {
  await moveClock(c.db, at - (await nowOf(c)))
  c.deps.scheduleTimers.expect(0)
}

/** Those that were given up are due again. */
async function fires(org: TestCoordinator, schedule: Schedule, count = 1): Promise<void> {
  await goOnTo((await nowOf(c)) + MINUTE)
  await until('its tick', async () => (await firedBy(org, schedule)).length >= count)
  assert.equal((await firedBy(org, schedule)).length, count)
}

// They came up to 2 s late.
test('ticks are written while what another org gives its runs is judged', async (t) => {
  const [slow, fine] = [await ofNewOrg(), await ofNewOrg()]
  const held = holdJudging(t, c, slow.org)
  const moments: string[] = []
  t.mock.method(c.deps.log, 'warn', (name: string) => {
    if (name === 'schedule.undecided') moments.push('the slow one is given up')
    announce()
  })
  const stopListening = onMoment(({ name, facts }) => {
    if (name === 'schedules.settled' && facts.schedules.includes(fine.schedule.id)) moments.push('the other is written')
  })
  await goOnTo(fine.schedule.nextAt! + MINUTE)
  await until('one of both', () => moments.length > 0)
  stopListening()
  assert.equal(moments[0], 'the other is written')
  assert.ok(held.begun() > 0)
  held.open()
  await fires(slow.org, slow.schedule)
})

test('ticks of an org that was slow have their turn behind others before anything of them is judged', async (t) => {
  const { org, schedule } = await ofNewOrg()
  const { schedulesBehind } = c.deps
  const noted: string[] = []
  t.mock.method(schedulesBehind.slowOrgs, 'begin', (orgId: string) => {
    noted.push(orgId)
    return () => undefined
  })
  t.mock.method(schedulesBehind.slowOrgs, 'isSlow', (orgId: string) => noted.includes(orgId))
  const held = holdJudging(t, c, org)
  /** Number of judgings that had begun when something was put behind. */
  const before: number[] = []
  const add = schedulesBehind.add.bind(schedulesBehind)
  t.mock.method(schedulesBehind, 'add', (...asked: Parameters<typeof add>) => {
    if (asked[0].some(({ item }) => item.orgId === org.orgId)) before.push(held.begun())
    add(...asked)
  })
  await goOnTo(schedule.nextAt! + MINUTE)
  await until('it is judged behind', () => noted.length > 0)
  held.open()
  await fires(org, schedule)
  const judged = held.begun()
  await goOnTo(schedule.nextAt! + 61 * MINUTE)
  await fires(org, schedule, 2)
  assert.deepEqual([before[0], before.at(-1)], [1, judged])
})

test('what waits behind others is fired once, also when one of two coordinators stops', async (t) => {
  const { org, schedule } = await ofNewOrg()
  const ids = [schedule.id, ...(await copiesOf(c, schedule, 60))]
  const other = await c.another()
  const both = [c, other].map((each) => ({ each, held: holdJudging(t, each, org) }))
  await goOnTo(schedule.nextAt! + MINUTE)
  other.deps.scheduleTimers.expect(0)
  for (const { each } of both)
    await until('they wait behind others', () => each.deps.schedulesBehind.here().has(org.orgId))
  const stopping = other.stop()
  for (const { held } of both) held.open()
  await stopping
  await goOnTo((await nowOf(c)) + MINUTE)
  const fired = async () => {
    const runs = await c.db<{ id: string }[]>`select trigger_id as id from runs where trigger_id = any(${ids})`
    return runs.map(({ id }) => id)
  }
  await until('all of them', async () => (await fired()).length >= ids.length)
  await c.deps.schedulesBehind.idle()
  assert.deepEqual((await fired()).toSorted(), ids.toSorted())
})
