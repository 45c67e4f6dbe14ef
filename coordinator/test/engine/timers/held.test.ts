// What is due and is put off: an agent that nobody hears may know more, and in an outage nobody could do anything.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { isLongAgo, lookNow, outageEnds, timerOf } from '../../_kit/after-outage.ts'
import { ageLeases, ageTimers, hear, SWEEPING } from '../../_kit/ageing.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator, typesOf } from '../../_kit/coordinator.ts'
import { aCrew, aPool } from '../../_kit/crew.ts'
import { wakeOf } from '../../_kit/journal.ts'
import { silence } from '../../_kit/silence.ts'
import { untilPolled } from '../../_kit/until.ts'
import { accepted, aParkedRun, call, question, sleepFor } from '../../_kit/waiting.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

const HOUR_MS = 3_600_000
const TIMED = { timeout: { wall: '1h', queue: '1h' } }

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'timed', descriptor: TIMED })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(() => c?.stop())

/** Waits until a timer that is due was looked at: it is gone, or put off. */
const looked = (run: string, kind: string, on = c) =>
  untilPolled(`a look at the ${kind}`, async () => {
    const timer = await timerOf(on, run, kind)
    if (timer === undefined) return { isPutOff: false, sinceGapMs: -Infinity }
    return timer.inMs > 0 && { isPutOff: true, sinceGapMs: timer.sinceGapMs }
  })

async function isPutOff(run: string, kind: string, on = c): Promise<void> {
  assert.equal((await looked(run, kind, on)).isPutOff, true)
}

test('the time of a run is not over while its agent is silent, and what has ended in time counts', async () => {
  const { id } = await aRun(c, { workflow: 'timed' })
  const offer = await takeNext(agent, link)
  await silence(c, agent)
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = 'wall-timeout'`
  lookNow(c)
  await isPutOff(id, 'wall-timeout')
  await link.report(offer, 2, end(returned('done')))
  assert.equal((await runOf(c, id)).status, 'completed')
})

test('what ended when the time of a run was over is too late, also while nobody has noted that', async () => {
  const { id } = await aRun(c, { workflow: 'timed' })
  const offer = await takeNext(agent, link)
  await silence(c, agent)
  await c.db`update runs set created_at = now() - interval '2 hours' where id = ${id}`
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = 'wall-timeout'`
  lookNow(c)
  await isPutOff(id, 'wall-timeout')
  const { why } = await c.call(ops.runs.why, { run: id })
  assert.match(why.causes.map(({ message }) => message).join(' '), /was used up at .* fails with RUN_TIMED_OUT once/)
  await link.report(offer, 2, end(returned('too late')))
  const run = await runOf(c, id)
  assert.deepEqual([run.status, run.error?.code, run.attempt], ['failed', 'RUN_TIMED_OUT', 1])
})

test('it is over once the agent was heard', async () => {
  const { id } = await aRun(c, { workflow: 'timed' })
  const offer = await takeNext(agent, link)
  // It is back since a moment only.
  await c.db`
    update runners
    set connected_at = now() + interval '1 hour', last_heartbeat_at = now() + interval '1 hour'
    where id = ${agent.id}`
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = 'wall-timeout'`
  lookNow(c)
  await isPutOff(id, 'wall-timeout')
  await hear(c, id)
  const { runs } = await link.next('cancel')
  assert.deepEqual([runs[0]!.run, runs[0]!.why], [id, 'timed-out'])
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  assert.equal((await runOf(c, id)).error?.code, 'RUN_TIMED_OUT')
})

test('an agent that connects again and again puts it off for ten minutes', async () => {
  const { id } = await aRun(c, { workflow: 'timed' })
  const offer = await takeNext(agent, link)
  const back = () => c.db`
    update runners
    set connected_at = now() + interval '1 hour', last_heartbeat_at = now() + interval '1 hour'
    where id = ${agent.id}`
  await back()
  await c.db`update timers set due_at = now() where run_id = ${id} and kind = 'wall-timeout'`
  lookNow(c)
  await isPutOff(id, 'wall-timeout')
  await c.db`
    update timers
    set holds = ((extract(epoch from now()) - 601) * 1000)::bigint::text
    where run_id = ${id} and kind = 'wall-timeout'`
  await link.next('cancel')
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  await hear(c, id)
})

test('it is over when the lease is, and of runs without a process at once', async () => {
  const swept = await aCoordinatorOfItsOwn(SWEEPING)
  try {
    await aWorkflow(swept, { slug: 'timed', descriptor: TIMED })
    const silent = await anAgent(swept)
    const own = await silent.connect()
    const executing = await aRun(swept, { workflow: 'timed' })
    await takeNext(silent, own)
    const queued = await aRun(swept, { workflow: 'timed' })
    await silence(swept, silent)
    await swept.db`update timers set due_at = now() where kind = 'wall-timeout'`
    lookNow(swept)
    await untilPolled('the end of the queued run', async () => (await runOf(swept, queued.id)).status === 'failed')
    await isPutOff(executing.id, 'wall-timeout', swept)
    await swept.db`update runs set created_at = now() - interval '2 hours' where id = ${executing.id}`
    await ageLeases(swept, executing.id)
    const run = await untilPolled('its end', async () => {
      const run = await runOf(swept, executing.id)
      return run.finishedAt !== null && run
    })
    // No agent is given a next attempt that would only be stopped.
    assert.deepEqual([run.status, run.error?.code, run.attempt], ['failed', 'RUN_TIMED_OUT', 1])
  } finally {
    await swept.stop()
  }
})

test('after an outage a run has 90 s to be claimed, however long it has been in the queue', async () => {
  await outageEnds(c)
  const before = await aRun(c, { workflow: 'timed' })
  const since = await aRun(c, { workflow: 'timed' })
  await c.db`update runs set queued_at = now() - interval '2 hours' where id = ${before.id}`
  await c.db`
    update timers
    set due_at = now() - interval '1 minute'
    where run_id in (${before.id}, ${since.id}) and kind = 'queue-timeout'`
  lookNow(c)
  const timer = await looked(before.id, 'queue-timeout')
  assert.ok(timer.isPutOff && timer.sinceGapMs > 89_000, JSON.stringify(timer))
  // This one came when there was a coordinator.
  await untilPolled('the end of the other run', async () => (await runOf(c, since.id)).status === 'failed')
  assert.equal((await runOf(c, before.id)).status, 'queued')
  isLongAgo(c)
  await ageTimers(c, before.id)
  await untilPolled('its end', async () => (await runOf(c, before.id)).error?.code === 'RUN_TIMED_OUT')
})

test('a question whose time was over in an outage takes an answer for 90 s', async () => {
  await outageEnds(c)
  const ask = question({ timeoutMs: HOUR_MS, onTimeoutText: '"nobody"' })
  const [one, other] = [
    await aParkedRun({ c, agent, link }, { workflow: 'any' }, ask),
    await aParkedRun({ c, agent, link }, { workflow: 'any' }, ask),
  ]
  const runs = [one.run, other.run]
  await c.db`update inputs set due_at = now() - interval '1 hour' where run_id = any(${runs})`
  await c.db`update timers set due_at = now() - interval '1 hour' where run_id = any(${runs}) and kind = 'input'`
  lookNow(c)
  for (const run of runs) {
    const timer = await looked(run, 'input')
    assert.ok(timer.isPutOff && timer.sinceGapMs > 89_000, JSON.stringify(timer))
  }
  const { causes } = (await c.call(ops.runs.why, { run: one.run })).why
  assert.ok(causes[0]!.until! > Date.now(), JSON.stringify(causes))
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: one.run })
  await c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: 'yes' })
  assert.deepEqual((await wakeOf(link, one)).completions, [{ n: 1, state: 'done', result: '"yes"' }])
  isLongAgo(c)
  await ageTimers(c, other.run)
  assert.deepEqual((await wakeOf(link, other)).completions, [{ n: 1, state: 'done', result: '"nobody"' }])
  for (const { run } of [one, other]) await c.call(ops.runs.cancel, { run })
})

/** A run that sleeps twice and waits for a child, and the child, which another agent executes. */
async function aRace() {
  const { pool, workflow } = await aPool(c)
  const other = await aCrew(c, pool)
  const parent = await aParkedRun({ c, agent, link }, { workflow: 'any' }, call(workflow), sleepFor(), sleepFor())
  const child = await accepted(other)
  await hear(c, child.run)
  return { parent, other, child }
}

const sleepsAreOver = (run: string) => c.db`
  update timers set due_at = now() - n * interval '1 second' where run_id = ${run} and kind = 'sleep'`

async function completed(run: string): Promise<number[]> {
  const rows = await c.db<{ n: number }[]>`
    select n from journal where run_id = ${run} and completion is not null order by completion`
  return rows.map(({ n }) => n)
}

test('after an outage a sleep waits for the agent of a child, which may have ended before', async () => {
  const { parent, other, child } = await aRace()
  await silence(c, other.agent)
  await outageEnds(c)
  await sleepsAreOver(parent.run)
  lookNow(c)
  await isPutOff(parent.run, 'sleep')
  await other.link.report(child, 1, end(returned('in time')))
  assert.ok((await typesOf(c, child.run)).includes('run.completed'))
  await untilPolled('all', async () => (await completed(parent.run)).length === 3)
  assert.deepEqual(await completed(parent.run), [1, 3, 2])
  await c.call(ops.runs.cancel, { run: parent.run })
})

test('a sleep waits neither for a child whose agent was heard since, nor at any other time', async () => {
  for (const begins of [
    async ({ child }: Awaited<ReturnType<typeof aRace>>) => {
      await outageEnds(c)
      await hear(c, child.run)
    },
    async ({ other }: Awaited<ReturnType<typeof aRace>>) => {
      await silence(c, other.agent)
      isLongAgo(c)
    },
  ]) {
    const race = await aRace()
    await begins(race)
    await sleepsAreOver(race.parent.run)
    lookNow(c)
    await untilPolled('the sleeps', async () => (await completed(race.parent.run)).length === 2)
    assert.deepEqual(await completed(race.parent.run), [3, 2])
    await c.call(ops.runs.cancel, { run: race.parent.run })
  }
})
