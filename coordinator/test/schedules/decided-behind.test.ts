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

interface Ticking {
  org: TestCoordinator
  schedule: Schedule
}

/** The schedule of a new org. */
async function ofNewOrg(): Promise<Ticking> {
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

async function severalNewOrgs(count: number): Promise<Ticking[]> {
  const all: Ticking[] = []
  while (all.length < count) all.push(await ofNewOrg())
  return all
}

const nextOf = (...all: Ticking[]) => Math.max(...all.map(({ schedule }) => schedule.nextAt!))

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
for (const count of [1, 5])
  test(`ticks are written while what ${count} other orgs give their runs is judged`, async (t) => {
    const fine = await ofNewOrg()
    const slow = await severalNewOrgs(count)
    const held = slow.map(({ org }) => holdJudging(t, c, org))
    const moments: string[] = []
    t.mock.method(c.deps.log, 'warn', (name: string) => {
      if (name === 'schedule.undecided') moments.push('a slow one is given up')
      announce()
    })
    const stopListening = onMoment(({ name, facts }) => {
      if (name === 'schedules.settled' && facts.schedules.includes(fine.schedule.id))
        moments.push('the other is written')
    })
    await goOnTo(nextOf(fine, ...slow) + MINUTE)
    await until('one of both', () => moments.length > 0)
    stopListening()
    assert.equal(moments[0], 'the other is written')
    assert.ok(held.every(({ begun }) => begun() > 0))
    for (const { open } of held) open()
    for (const { org, schedule } of slow) await fires(org, schedule)
  })

// Each of them had a transaction of its own behind the others: 100 orgs took 4 s in place of 0.2.
test('ticks of many orgs that are late together are written by their pass', async (t) => {
  const all = await severalNewOrgs(8)
  const schedules = all.map(({ schedule }) => schedule.id)
  const held = all.map(({ org }) => holdJudging(t, c, org))
  const behind = new Set<string>()
  const openAll = () => {
    for (const { open } of held) open()
  }
  const { schedulesBehind } = c.deps
  const add = schedulesBehind.add.bind(schedulesBehind)
  t.mock.method(schedulesBehind, 'add', (...asked: Parameters<typeof add>) => {
    for (const { item } of asked[0]) if (schedules.includes(item.id)) behind.add(item.id)
    if (behind.size === all.length) openAll()
    add(...asked)
  })
  const stopListening = onMoment(({ name, facts }) => {
    if (name === 'schedules.waiting' && facts.undecided >= all.length) openAll()
  })
  await goOnTo(nextOf(...all) + MINUTE)
  for (const { org, schedule } of all) await until('its tick', async () => (await firedBy(org, schedule)).length === 1)
  stopListening()
  assert.ok(behind.size <= 3, `${behind.size} of them were written alone`)
})

// It stood behind itself then, in the line of all that its org has judged.
test('what a pass gives up is judged once', async (t) => {
  const { org, schedule } = await ofNewOrg()
  const held = holdJudging(t, c, org)
  t.mock.method(c.deps.schedulesBehind.slowOrgs, 'begin', () => {
    // Its turn has come.
    held.open()
    return () => undefined
  })
  await goOnTo(schedule.nextAt! + MINUTE)
  await until('its tick', async () => (await firedBy(org, schedule)).length === 1)
  assert.equal(held.begun(), 1)
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
