import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { quietOf } from '../../engine/commit/delete-run.ts'
import { beginRetention, type RetentionDeps, retentionTurn } from '../../retention/work.ts'
import { anAgent, end, returned, start } from '../_kit/agent.ts'
import { aCoordinator, anOrg, aRun, asOwner, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { accepted, aParkedRun, call, type Crew, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const DAY_MS = 86_400_000

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

type Ask = Omit<ArgsOf<typeof ops.retention.update>, 'org'>
const update = async (ask: Ask, at: TestCoordinator = c) =>
  (await at.call(ops.retention.update, { org: at.org, ...ask })).retention

/** So many days from now, by the clock of the database. */
const inDays = (days: number, config: Partial<RetentionDeps['config']> = {}): RetentionDeps => ({
  ...c.deps,
  config: { ...c.deps.config, ...config },
  databaseClock: { now: () => Date.now() + days * DAY_MS, aheadMs: () => 0 },
})
const turn = (deps: RetentionDeps, turnMs?: number) => retentionTurn(deps, { orgId: c.orgId }, turnMs)

async function aFinishedRun(at: TestCoordinator = c): Promise<RunId> {
  const { id } = await aRun(at, { workflow: 'any', input: 'precious' })
  await at.call(ops.runs.cancel, { run: id })
  return id
}
const isDeleted = async (id: string, at: TestCoordinator = c) => (await runOf(at, id)).deletedAt !== null

test('nothing is said at first; what is left out stays, and an hour passes before it acts', async () => {
  const none = { runsDays: null, deliveriesDays: null, maxRunsDays: null, maxDeliveriesDays: null, actsAt: null }
  assert.deepEqual((await c.call(ops.retention.get, { org: c.org })).retention, none)
  const first = await update({ runsDays: 90 })
  assert.deepEqual({ ...first, actsAt: null }, { ...none, runsDays: 90 })
  const both = await update({ deliveriesDays: 7 })
  assert.deepEqual([both.runsDays, both.deliveriesDays], [90, 7])
  assert.ok(both.actsAt! > Date.now() + 3_500_000)
  assert.equal((await update({ deliveriesDays: 7 })).actsAt, both.actsAt, 'said again it changes nothing')
  const { auditEntries } = await c.call(ops.audit.list, { org: c.org, action: ['retention.update'] })
  assert.deepEqual(
    auditEntries.map((entry) => [entry.before, entry.after]),
    [
      [
        { runsDays: 90, deliveriesDays: null },
        { runsDays: 90, deliveriesDays: 7 },
      ],
      [
        { runsDays: null, deliveriesDays: null },
        { runsDays: 90, deliveriesDays: null },
      ],
    ],
  )
  await update({ runsDays: null, deliveriesDays: null })
})

test('no days, parts of days, and more than the service keeps are refused', async () => {
  for (const runsDays of [0, -1, 1.5, 40_000])
    await assert.rejects(update({ runsDays }), refusal('VALIDATION_FAILED', 'runsDays'))
  const limited = await c.another({ MAX_RUNS_DAYS: 30 })
  await assert.rejects(update({ runsDays: 31 }, limited), refusal('VALIDATION_FAILED', 'runsDays'))
  assert.equal((await update({ runsDays: 30 }, limited)).maxRunsDays, 30)
  await limited.stop()
  await update({ runsDays: null })
})

test('runs are deleted so many days after their end, those of other orgs are not', async () => {
  const other = asOwner(c, await anOrg(c))
  await aWorkflow(other, { slug: 'any' })
  const theirs = await aFinishedRun(other)
  const [one, two] = [await aFinishedRun(), await aFinishedRun()]
  await turn(inDays(1000))
  assert.equal(await isDeleted(one), false, 'by default all is kept')
  await update({ runsDays: 90 })
  await turn(inDays(89))
  assert.equal(await isDeleted(one), false)
  await turn(inDays(91))
  assert.deepEqual([await isDeleted(one), await isDeleted(two)], [true, true])
  assert.equal(await isDeleted(theirs, other), false)
  await assert.rejects(c.call(ops.runs.input, { run: one }), refusal('RUN_DELETED'))
  await untilPolled('their logs are gone', async () => {
    const rows = await c.db`select 1 from run_events where run_id in (${one}, ${two})`
    return rows.length === 0
  })
  const [entry] = (await c.call(ops.audit.list, { org: c.org, action: ['retention.delete'] })).auditEntries
  assert.equal(entry?.actor.kind, 'system')
  const { runs, first, last } = entry.after as { runs: number; first: string; last: string }
  assert.ok(runs >= 2 && first <= one && last >= two)
  await update({ runsDays: null })
})

test('nothing is deleted before the hour is over, nor by clocks that are apart', async () => {
  const id = await aFinishedRun()
  await update({ runsDays: 1 })
  const late = { now: () => Date.now() + 3_000_000, aheadMs: () => 0 }
  await c.db`update runs set finished_at = now() - interval '3 days' where id = ${id}`
  await turn({ ...inDays(0), databaseClock: late })
  const jobs = () => c.db`select from graphile_worker.jobs where key = ${`retention:${c.orgId}`}`
  await beginRetention({ ...inDays(0), databaseClock: late })
  assert.equal((await jobs()).length, 0)
  await beginRetention({ ...inDays(5), databaseClock: { ...inDays(5).databaseClock, aheadMs: () => 2 * 3_600_000 } })
  assert.equal((await jobs()).length, 0)
  await turn({ ...inDays(5), databaseClock: { ...inDays(5).databaseClock, aheadMs: () => -2 * 3_600_000 } })
  assert.equal(await isDeleted(id), false, 'nor where they went apart behind the hour')
  await update({ runsDays: null })
})

test('what has not ended, or has called what has not, is looked at again a day later', async () => {
  await update({ runsDays: 10 })
  const parent = await aParkedRun(crew, { workflow: 'any' }, call('any'))
  const child = await accepted(crew)
  await crew.link.report(child, 1, start())
  await crew.link.report(parent, 4, end(returned('early')))
  const sleeper = await aParkedRun(crew, { workflow: 'any' }, sleepFor())
  const [ended] = [await aFinishedRun()]
  assert.equal((await runOf(c, parent.run)).status, 'completed')
  await turn(inDays(11))
  const deleted = () => Promise.all([parent.run, child.run, sleeper.run, ended].map((id) => isDeleted(id)))
  assert.deepEqual(await deleted(), [false, false, false, true])
  await crew.link.report(child, 2, end(returned('late')))
  await untilPolled('the end of the child', async () => (await runOf(c, child.run)).finishedAt !== null)
  await turn(inDays(12))
  assert.deepEqual(await deleted(), [false, false, false, true], 'each is looked at once a day')
  const tomorrow = () => c.db`update retention_late set look_at = look_at - interval '1 day 1 second'`
  await tomorrow()
  await turn(inDays(12))
  assert.deepEqual(await deleted(), [true, true, false, true])
  await c.call(ops.runs.cancel, { run: sleeper.run })
  await crew.link.report(sleeper, 4, end({ how: 'cancelled', forced: false }))
  await untilPolled('the end of the sleeper', async () => (await runOf(c, sleeper.run)).finishedAt !== null)
  await tomorrow()
  await turn(inDays(12))
  assert.deepEqual(await deleted(), [true, true, true, true])
  assert.deepEqual([...(await c.db`select from retention_late where org_id = ${c.orgId}`)], [])
  await update({ runsDays: null })
})

test('what the service keeps counts for orgs that have said nothing, or more', async () => {
  const id = await aFinishedRun()
  await turn(inDays(20, { maxRunsDays: 30 }))
  assert.equal(await isDeleted(id), false)
  await turn(inDays(31, { maxRunsDays: 30 }))
  assert.equal(await isDeleted(id), true)
})

test('who changes what he says each hour keeps nothing for longer than the service does', async () => {
  const id = await aFinishedRun()
  await update({ runsDays: 20 })
  await c.db`update retention set acts_at = now() + interval '40 days' where org_id = ${c.orgId}`
  await turn(inDays(29, { maxRunsDays: 30 }))
  assert.equal(await isDeleted(id), false)
  await beginRetention(inDays(31, { maxRunsDays: 30 }))
  await turn(inDays(31, { maxRunsDays: 30 }))
  assert.equal(await isDeleted(id), true)
  await update({ runsDays: null })
})

test('nobody who goes on with a run waits for the look at it', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const ended = await aFinishedRun()
  await update({ runsDays: 1 })
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${id} for update`
    await turn(inDays(3))
  })
  assert.deepEqual([await isDeleted(id), await isDeleted(ended)], [false, true])
  await c.call(ops.runs.cancel, { run: id })
  await update({ runsDays: null })
})

test('what has not ended is found below all that called it, in large trees too', async () => {
  const runs: RunId[] = []
  for (let i = 0; i < 6; i++) runs.push(await aFinishedRun())
  const [top, child, , grandchild, other, child2] = runs as [RunId, RunId, RunId, RunId, RunId, RunId]
  const { id: unfinished } = await aRun(c, { workflow: 'any' })
  const calls = [
    [top, child],
    [child, grandchild],
    [grandchild, unfinished],
    [other, child2],
  ] as const
  for (const [parent, run] of calls)
    await c.db`update runs set parent_run_id = ${parent}, parent_entry = 1 where id = ${run}`
  const quiet = (most?: number) => quietOf(c.db, runs, most)
  const alone = runs[2]!
  assert.deepEqual(await quiet(), [alone, other, child2])
  assert.deepEqual(await quiet(3), [alone, child2])
  await assert.rejects(c.call(ops.runs.delete, { run: top }), refusal('RUN_HAS_LIVE_CHILDREN'))
  await c.call(ops.runs.cancel, { run: unfinished })
  assert.deepEqual(await quiet(), runs)
  for (const run of [grandchild, child2]) await c.call(ops.runs.delete, { run })
  assert.deepEqual(await quiet(3), runs, 'all below is deleted')
})

test('a turn that is over leaves the rest to the next one', async () => {
  await update({ runsDays: 1 })
  await c.db`update retention set acts_at = now() - interval '1 h' where org_id = ${c.orgId}`
  // More looks than a portion has; that they lead to no run does not matter here.
  await c.db`
    insert into retention_late (org_id, look_at, run_id)
    select ${c.orgId}, date_trunc('second', now()) - interval '1 h', 'run_late' || lpad(n::text, 22, '0')
    from generate_series(1, 250) n`
  const due = async () => (await c.db`select from retention_late where org_id = ${c.orgId} and look_at < now()`).length
  await turn(c.deps, 0)
  await untilPolled('the next turn has looked at the rest', async () => (await due()) === 0)
  await c.db`delete from retention_late where org_id = ${c.orgId}`
  await update({ runsDays: null })
})

test('what the hour begins, a job does', async () => {
  const id = await aFinishedRun()
  await update({ runsDays: 1 })
  await c.db`update retention set acts_at = now() - interval '1 h' where org_id = ${c.orgId}`
  await c.db`update runs set finished_at = now() - interval '25 hours' where id = ${id}`
  await c.db`insert into retention_late (org_id, look_at, run_id) values (${c.orgId}, now() - interval '1 h', ${id})`
  await beginRetention(c.deps)
  await untilPolled('the run is deleted', () => isDeleted(id))
  await update({ runsDays: null })
})
