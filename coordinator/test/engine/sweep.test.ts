import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { firstIdAt, newId, type RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { sweepRunsOnce } from '../../engine/sweep/sweep.ts'
import { followMark, moveMark } from '../../engine/sweep/mark.ts'
import { end, returned, start } from '../_kit/agent.ts'
import { unowned } from '../../engine/store/orphans.ts'
import { aRun, runOf, typesOf } from '../_kit/coordinator.ts'
import { aSweptCoordinator, CALL, QUESTION } from '../_kit/swept.ts'
import { until } from '../_kit/until.ts'

const swept = await aSweptCoordinator()
const { c, agent, link, queueRow, timersOf, statusOf, placed, entryOf, resultOf, finds } = swept
const { offered, parked, evicted, clear } = swept
afterEach(clear)
after(() => swept.stop())

test('nothing is found where nothing is broken, whatever state a run is in', async () => {
  const { offer } = await offered()
  const ids = [await parked(), await parked(QUESTION), await evicted(), await evicted(QUESTION), await evicted(CALL)]
  await aRun(c, { workflow: 'any' })
  assert.equal(await sweepRunsOnce(c.deps), 0)
  await c.call(ops.runs.cancel, { run: offer.run })
  for (const run of ids.slice(0, 2)) await c.call(ops.runs.cancel, { run })
  assert.equal(await sweepRunsOnce(c.deps), 0)
  await link.report(offer, 1, start(), end({ how: 'cancelled', forced: false }))
  assert.equal(await sweepRunsOnce(c.deps), 0)
})

test('a queued run that is in no queue enters it', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`delete from run_queue where run_id = ${id}`
  await finds('queued_nowhere')
  assert.deepEqual(await queueRow(id), { isResume: false })
  const [offer] = await agent.poll(1)
  assert.equal(offer?.run, id)
})

test('a queued run that is in the queue as if it were to continue is put right', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`update run_queue set is_resume = true where run_id = ${id}`
  await finds('queued_nowhere', 'stray_queue_row')
  assert.deepEqual(await queueRow(id), { isResume: false })
})

test('a queued run that would enter the queue a second time does not', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`
    insert into timers (run_id, org_id, kind, due_at)
    values (${id}, ${c.orgId}, 'enqueue', now() + interval '1 hour')`
  await finds('queued_twice')
  assert.deepEqual(await queueRow(id), { isResume: false })
  assert.equal((await timersOf(id)).length, 0)
})

test('an offered run without a placement is queued again, and no attempt is lost', async () => {
  const { offer } = await offered()
  await c.db`delete from placements where run_id = ${offer.run}`
  await finds('process_missing')
  const { status, attempt } = await runOf(c, offer.run)
  assert.deepEqual({ status, attempt }, { status: 'queued', attempt: 1 })
  assert.deepEqual(await queueRow(offer.run), { isResume: false })
})

test('an executing run without a placement has crashed', async () => {
  const { offer } = await offered()
  await link.report(offer, 1, start())
  await c.db`delete from placements where run_id = ${offer.run}`
  await finds('process_missing')
  const { status, attempt } = await runOf(c, offer.run)
  assert.deepEqual({ status, attempt }, { status: 'queued', attempt: 2 })
})

test('a placement of another epoch is none', async () => {
  const { offer } = await offered()
  await link.report(offer, 1, start())
  await c.db`update placements set epoch = epoch + 1 where run_id = ${offer.run}`
  await finds('process_missing')
  assert.equal(await placed(offer.run), false)
})

test('a run that is being cancelled and has no process any more is cancelled', async () => {
  const { offer } = await offered()
  await link.report(offer, 1, start())
  await c.call(ops.runs.cancel, { run: offer.run })
  await c.db`delete from placements where run_id = ${offer.run}`
  await finds('process_missing')
  assert.equal(await statusOf(offer.run), 'cancelled')
})

test('a parked run without a placement rests, and its wait goes on', async () => {
  const id = await parked()
  await c.db`delete from placements where run_id = ${id}`
  await finds('process_missing')
  assert.equal(await statusOf(id), 'sleeping')
  assert.equal((await timersOf(id)).length, 1)
  await c.db`update timers set due_at = now() where run_id = ${id}`
  c.deps.timers.expect(0)
  const [offer] = await agent.poll(1)
  assert.equal(offer?.run, id)
  assert.equal(offer?.replay, true)
})

test('an evicted run whose wait is over and that is in no queue enters it', async () => {
  const id = await evicted()
  await c.db`update journal set state = 'done', result = 'null', completion = nextval('journal_completions') where run_id = ${id}`
  await c.db`delete from timers where run_id = ${id}`
  await finds('wake_missing')
  assert.deepEqual(await queueRow(id), { isResume: true })
})

test('who says that a run waits, and has asked for nothing, loses an attempt each time, and is no orphan', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  for (let attempt = 1; attempt <= 4; attempt++) {
    const [offer] = await agent.poll(1)
    assert.equal(offer?.run, id)
    await link.accept(offer)
    await link.report(offer, 1, start(), ['park', Date.now(), 'input', 5], end({ how: 'evicted', reason: 'age' }))
    assert.equal(await statusOf(id), 'awaiting_input')
    assert.equal(await sweepRunsOnce(c.deps), 0)
    assert.deepEqual((await runOf(c, id)).lost?.attempt, attempt)
  }
  const { status, error } = await runOf(c, id)
  assert.deepEqual([status, error?.code], ['failed', 'RUN_CRASHED'])
  assert.match(error!.message, /no sleep, question or call of it was open/)
})

test('a lost timer is set again, for its own moment', async () => {
  const ids = [await parked(), await evicted(), await evicted(QUESTION)]
  const before = await Promise.all(ids.map(timersOf))
  await c.db`delete from timers where run_id = any(${ids})`
  await finds('timer_missing', 'timer_missing', 'timer_missing')
  assert.deepEqual(await Promise.all(ids.map(timersOf)), before)
})

test('a page ends where its journals are large, and the walk leaves nothing out', async () => {
  const ids = [await evicted(), await evicted(), await evicted(), await evicted()].sort()
  await c.db`update runs set entries = 30000 where id = any(${ids})`
  await c.db`delete from timers where run_id = any(${ids})`
  // Of a run that is gone nothing is known: it is no reason to go on behind it.
  const gone = newId('run')
  await c.db`insert into runs_remaining (run_id, org_id) values (${gone}, ${c.orgId})`
  const pages: string[][] = []
  for (let after: string | null = ''; after !== null;) {
    const { findings, last } = await unowned(c.db, { after, limit: 1_000 })
    pages.push(findings.map(({ runId }) => runId))
    after = last
  }
  await c.db`delete from runs_remaining where run_id = ${gone}`
  assert.deepEqual(
    pages.map((page) => page.sort()),
    [ids.slice(0, 2), ids.slice(2), []],
  )
  await finds('timer_missing', 'timer_missing', 'timer_missing', 'timer_missing')
})

test('an answer that the run has not heard of reaches it', async () => {
  const id = await evicted(QUESTION)
  await c.db`update inputs set status = 'answered', closed_at = now(), answer = '"yes"', answered_by = 'x' where run_id = ${id}`
  await finds('question_missing')
  assert.equal(await resultOf(id), 'yes')
  assert.deepEqual(await queueRow(id), { isResume: true })
})

test('a question that timed out unheard gives its default, and one that is gone fails the call', async () => {
  const late = await evicted(QUESTION)
  await c.db`update inputs set status = 'timed_out', closed_at = now() where run_id = ${late}`
  await finds('question_missing')
  assert.equal(await resultOf(late), 'no')
  await clear()
  const gone = await evicted(QUESTION)
  await c.db`delete from inputs where run_id = ${gone}`
  await finds('question_missing')
  assert.equal((await entryOf(gone)).state, 'failed')
  assert.equal(((await resultOf(gone)) as { code: string }).code, 'CALL_REFUSED')
})

const childOf = async (id: string) => {
  const [row] = await c.db<{ id: RunId }[]>`select id from runs where parent_run_id = ${id}`
  return row!.id
}

test('the end of a child that its parent has not heard of reaches it', async () => {
  const parent = await evicted(CALL)
  const child = await childOf(parent)
  await c.db`delete from run_queue where run_id = ${child}`
  await c.db`update runs set status = 'completed', output = '{"total":3}', finished_at = now() where id = ${child}`
  await finds('child_ended')
  assert.deepEqual(await resultOf(parent), { total: 3 })
  assert.deepEqual(await queueRow(parent), { isResume: true })
})

test('so does it reach a parent that is parked, by way of its agent', async () => {
  const parent = await parked(CALL)
  const child = await childOf(parent)
  await c.db`delete from run_queue where run_id = ${child}`
  const error = { code: 'PROGRAM_FAILED', message: 'no' }
  await c.db`update runs set status = 'failed', error = ${JSON.stringify(error)}, finished_at = now() where id = ${child}`
  await finds('child_ended')
  const woken = async () => {
    const { runs } = await link.next('wake')
    return runs.find((one) => one.run === parent)
  }
  const wake = await until('the agent is told', woken)
  assert.deepEqual(
    wake.completions.map(({ state }) => state),
    ['failed'],
  )
})

test('a call whose child does not exist fails', async () => {
  const parent = await evicted(CALL)
  const child = await childOf(parent)
  await c.db`delete from run_queue where run_id = ${child}`
  await c.db`delete from runs where id = ${child}`
  await finds('child_missing')
  assert.equal(((await resultOf(parent)) as { code: string }).code, 'CALL_REFUSED')
})

test('many orphans are found page by page, and one that cannot be repaired is counted and keeps nobody from it', async () => {
  // Its version is gone, so nobody knows what its crash means.
  const { offer: broken } = await offered()
  const { id } = await aRun(c, { workflow: 'any' })
  await link.report(broken, 1, start())
  const [{ versionId }] = await c.db<[{ versionId: string }]>`select version_id from runs where id = ${broken.run}`
  await c.db`update runs set version_id = 'ver_gone' where id = ${broken.run}`
  await c.db`delete from placements where run_id = ${broken.run}`
  await c.db`
    insert into runs (id, org_id, workflow_id, version_id, pool_id, status, trigger_kind, input)
    select 'run_copy_' || i, org_id, workflow_id, version_id, pool_id, 'queued', 'api', 'null'
    from runs, generate_series(1, 10) i
    where id = ${id}`
  const found = await sweepRunsOnce(c.deps, 3)
  assert.equal(found, 11)
  assert.equal((await c.db`select from run_queue`).length, 11)
  await c.db`delete from run_queue where run_id like 'run_copy_%'`
  await c.db`delete from runs where id like 'run_copy_%'`
  assert.equal(await sweepRunsOnce(c.deps), 1)
  await c.db`update runs set version_id = ${versionId} where id = ${broken.run}`
  await finds('process_missing')
})

test('while one coordinator sweeps, another leaves it alone', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`delete from run_queue where run_id = ${id}`
  const founds = await Promise.all([sweepRunsOnce(c.deps), sweepRunsOnce(c.deps), sweepRunsOnce(c.deps)])
  assert.deepEqual(founds.toSorted(), [0, 0, 1])
})

test('says in the log of a run what became of it', async () => {
  const { offer } = await offered()
  await link.report(offer, 1, start())
  await c.db`delete from placements where run_id = ${offer.run}`
  await finds('process_missing')
  assert.deepEqual((await typesOf(c, offer.run)).slice(-2), ['run.restarted', 'run.queued'])
})

test('runs from before the mark are looked at as long as they have not finished, and forgotten then', async () => {
  const old = await evicted()
  const { offer } = await offered()
  await link.report(offer, 1, start(), end(returned(null)))
  await moveMark(c.deps.db, offer.run)
  const remaining = async () =>
    (await c.db<{ runId: string }[]>`select run_id from runs_remaining`).map((row) => row.runId)
  assert.ok((await remaining()).includes(old))
  assert.equal((await remaining()).includes(offer.run), false)
  await c.db`delete from timers where run_id = ${old}`
  const young = await evicted()
  await c.db`delete from timers where run_id = ${young}`
  assert.equal(await sweepRunsOnce(c.deps, 1), 2)
  await c.call(ops.runs.cancel, { run: old })
  assert.equal(await sweepRunsOnce(c.deps), 0)
  assert.equal((await remaining()).includes(old), false)
})

test('a run made by a slow clock, behind the mark, is unfinished like any other', async () => {
  const [{ runId: mark }] = await c.db<[{ runId: string }]>`select run_id from sweep_mark`
  await c.db`update sweep_mark set run_id = ${firstIdAt('run', Date.now() + 3_600_000)}`
  try {
    const late = await aRun(c, { workflow: 'any' })
    const { runs } = await c.call(ops.runs.list, { org: c.org, status: ['queued'] })
    assert.ok(runs.some(({ id }) => id === late.id))
    await c.db`delete from run_queue where run_id = ${late.id}`
    assert.equal(await sweepRunsOnce(c.deps), 1)
    await c.call(ops.runs.cancel, { run: late.id })
  } finally {
    await c.db`update sweep_mark set run_id = ${mark}`
  }
})

test('the mark stays behind runs that are not committed yet', async () => {
  const before = newId('run')
  const now = Date.now()
  assert.ok(firstIdAt('run', now - 1000) < before && before < firstIdAt('run', now + 1000))
  await followMark(c.deps.db)
  const [row] = await c.db<[{ runId: string }]>`select run_id from sweep_mark`
  assert.ok(row.runId < firstIdAt('run', now))
})
