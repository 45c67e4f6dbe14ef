// What may have to wait for somebody whom nobody has heard yet: asked behind the pass, where a run has a long journal.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type OrgId, type RunId, newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Grace } from '../../../engine/commit/grace.ts'
import { holdBack } from '../../../engine/commit/held-timers.ts'
import { type DueOfRun, openTimersBehind, passedOver } from '../../../engine/commit/timers-behind.ts'
import type { Upcoming } from '../../../engine/store/timers.ts'
import { lookNow, outageEnds, timerOf } from '../../_kit/after-outage.ts'
import { hear } from '../../_kit/ageing.ts'
import { anAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, anOrg, asOwner, type TestCoordinator } from '../../_kit/coordinator.ts'
import { aCrew, aPool } from '../../_kit/crew.ts'
import { silence } from '../../_kit/silence.ts'
import { until, untilPolled } from '../../_kit/until.ts'
import { accepted, aParkedRun, call, type Crew, sleepFor } from '../../_kit/waiting.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let theirs: TestCoordinator
let crews: { ours: Crew; theirs: Crew }

before(async () => {
  c = await aCoordinatorOfItsOwn()
  theirs = asOwner(c, await anOrg(c))
  crews = { ours: await aCrewOf(c), theirs: await aCrewOf(theirs) }
})
after(() => c?.stop())

async function aCrewOf(owner: TestCoordinator): Promise<Crew> {
  await aWorkflow(owner, { slug: 'any' })
  const agent = await anAgent(owner)
  return { c: owner, agent, link: await agent.connect() }
}

/** A run that sleeps twice and waits for a child, which another agent executes. */
async function aRace(crew: Crew) {
  const { pool, workflow } = await aPool(crew.c)
  const other = await aCrew(crew.c, pool)
  const { run } = await aParkedRun(crew, { workflow: 'any' }, call(workflow), sleepFor(), sleepFor())
  const child = await accepted(other)
  await hear(crew.c, child.run)
  return { run, child, other }
}

/** Together: one look finds them all. */
const sleepsAreOver = (...runs: RunId[]) => c.db`
  update timers set due_at = now() - n * interval '1 second' where run_id = any(${runs}) and kind = 'sleep'`

async function completed(run: string): Promise<number[]> {
  const rows = await c.db<{ n: number }[]>`
    select n from journal where run_id = ${run} and completion is not null order by completion`
  return rows.map(({ n }) => n)
}

/** Numbers of the sleeps that are still to come, the next one first. */
async function toCome(run: string): Promise<number[]> {
  const rows = await c.db<{ n: number }[]>`
    select n from timers where run_id = ${run} and kind = 'sleep' and due_at > now() order by due_at`
  return rows.map(({ n }) => n)
}

const isOver = (run: string, nth = 2) => untilPolled('the sleeps', async () => (await completed(run)).length === nth)

/** Deps that put what is asked behind the pass into this list. */
function withList(behind: { item: DueOfRun; weight: number }[], grace: ReturnType<Grace['now']>) {
  const inDoubt = {
    ...c.deps.timersBehind.inDoubt,
    add: (some: readonly (typeof behind)[number][]) => behind.push(...some),
  }
  return { ...c.deps, grace: { now: () => grace }, timersBehind: { inDoubt } }
}

const AFTER_OUTAGE = { gapAtMs: Date.now() + 3_600_000, sinceMs: 0, leftMs: 60_000 }
const NEVER = () => Promise.reject(new Error('nothing is done here'))

const aSleep = (runId: RunId, orgId: OrgId): Upcoming => ({ runId, orgId, kind: 'sleep', n: 1, inMs: 0 })

/** Ids of runs that have so many entries. They do not wait for anything. */
async function runsWith(owner: TestCoordinator, entries: readonly number[]): Promise<RunId[]> {
  const ids: RunId[] = []
  for (const count of entries) {
    const { run } = await owner.call(ops.runs.trigger, { org: owner.org, workflow: 'any', delayMs: 3_600_000 })
    await c.db`update runs set entries = ${count} where id = ${run.id}`
    ids.push(run.id)
  }
  return ids
}

test('the pass asks about no run with a long journal, and about no org with many entries', async () => {
  const [long, short] = await runsWith(c, [24_000, 5])
  const many = await runsWith(theirs, [450, 450, 450, 450, 450])
  const own = [aSleep(long!, c.orgId), aSleep(short!, c.orgId)]
  const due = [...own, ...many.map((id) => aSleep(id, theirs.orgId))]
  const behind: { item: DueOfRun; weight: number }[] = []
  assert.deepEqual(await holdBack(withList(behind, AFTER_OUTAGE), due, NEVER), [own[1]])
  assert.deepEqual(
    behind.map(({ item, weight }) => [item.runId, item.timers.length, weight]),
    [[long, 1, 24_000], ...many.map((id) => [id, 1, 450])],
  )
  // At other times it asks about none of them.
  assert.deepEqual(await holdBack(withList([], undefined), due, NEVER), due)
})

test('looks leave out the runs that have something behind the pass, and do not read all of their orgs', async () => {
  const lines = openTimersBehind({ db: c.db, log: c.deps.log, timers: { expect() {}, run: () => Promise.resolve() } })
  const deps = { ...c.deps, timersBehind: lines }
  const here = () => [passedOver(deps).runs, passedOver(deps).runsOf]
  for (const name of ['inDoubt', 'limited', 'locked'] as const) {
    const [done, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const [runId, orgId] = [newId('run'), newId('org')]
    const item = { ...aSleep(runId, orgId), timers: [] }
    lines[name].add([{ item, weight: 1, isLimited: true }], () => {
      begun.resolve()
      return done.promise
    })
    await begun.promise
    assert.deepEqual(here(), [[runId], [orgId]], name)
    done.resolve()
    await lines[name].idle()
    assert.deepEqual(here(), [[], []], name)
  }
})

test('a run with a long journal is put off for longer, in its order', async () => {
  const { run, child, other } = await aRace(crews.ours)
  await c.db`update runs set entries = 2500000 where id = ${run}`
  await silence(c, other.agent)
  await outageEnds(c)
  await sleepsAreOver(run)
  lookNow(c)
  await until('both to be put off', async () => (await toCome(run)).length === 2)
  assert.deepEqual(await toCome(run), [3, 2])
  // 0.4 ms an entry.
  const timer = await timerOf(c, run, 'sleep')
  assert.ok(timer!.inMs > 900_000, JSON.stringify(timer))
  assert.deepEqual(await completed(run), [])
  await hear(c, child.run)
  await sleepsAreOver(run)
  lookNow(c)
  await isOver(run)
  assert.deepEqual(await completed(run), [3, 2])
  await c.call(ops.runs.cancel, { run })
})

test('where one run cannot be put off the others wait all the same, also those of its org', async () => {
  const [failing, beside, other] = [await aRace(crews.ours), await aRace(crews.ours), await aRace(crews.theirs)]
  for (const { other: crew } of [failing, beside, other]) await silence(c, crew.agent)
  await outageEnds(c)
  await c.db.unsafe(`
    create function fails() returns trigger language plpgsql as $$
      begin raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end
    $$;
    create trigger fails before update on timers for each row
    when (new.run_id = '${failing.run}' and new.due_at > now()) execute function fails()`)
  try {
    await sleepsAreOver(failing.run, beside.run, other.run)
    lookNow(c)
    // Nobody knows of a way to hold it.
    await isOver(failing.run)
    for (const { run } of [beside, other]) await until('it to be put off', async () => (await toCome(run)).length === 2)
    assert.deepEqual([await completed(beside.run), await completed(other.run)], [[], []])
  } finally {
    await c.db.unsafe('drop trigger fails on timers; drop function fails')
  }
  for (const { run } of [failing, beside]) await c.call(ops.runs.cancel, { run })
  await theirs.call(ops.runs.cancel, { run: other.run })
})
