// Runs that nobody let into the queue when their time had come, as no coordinator was there.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { isLongAgo, lookNow, outageEnds, timerOf } from '../../_kit/after-outage.ts'
import { anAgent, end, type Link, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

const HOUR_MS = 3_600_000
const TIMED = { timeout: { queue: '1h' } }

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'timed', descriptor: TIMED })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(() => c?.stop())

for (const [when, begins] of [
  ['after an outage', outageEnds],
  ['at any other time', isLongAgo],
] as const)
  test(`a run that comes late into the queue may wait there as long as any other, ${when}`, async () => {
    await begins(c)
    const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'timed', delayMs: HOUR_MS })
    await c.db`update runs set queued_at = now() - interval '59 minutes' where id = ${run.id}`
    const overdue = when === 'after an outage'
    await c.db`
      update timers
      set due_at = case
        when kind = 'enqueue' then now() - interval '59 minutes'
        when ${overdue} then now() - interval '1 minute'
        else now() + interval '1 minute'
      end
      where run_id = ${run.id} and kind in ('enqueue', 'queue-timeout')`
    lookNow(c)
    const timer = await untilPolled('the queue', async () => {
      const { length } = await c.db`select from run_queue where run_id = ${run.id}`
      const end = (await runOf(c, run.id)).finishedAt
      return (length > 0 || end !== null) && { end, timer: await timerOf(c, run.id, 'queue-timeout') }
    })
    assert.equal(timer.end, null)
    assert.ok(timer.timer!.inMs > HOUR_MS - 60_000, JSON.stringify(timer))
    await c.call(ops.runs.cancel, { run: run.id })
  })

test('a stall of seconds takes nothing of the time that runs may wait in the queue', async () => {
  isLongAgo(c)
  const throttle = { limit: 1, per: '1h' }
  await aWorkflow(c, { slug: 'stalled', descriptor: { ...TIMED, throttle } })
  const runs: string[] = []
  for (const workflow of ['timed', 'stalled', 'stalled'])
    runs.push((await c.call(ops.runs.trigger, { org: c.org, workflow, delayMs: HOUR_MS })).run.id)
  await c.db`update runs set queued_at = now() - interval '4 seconds' where id = any(${runs})`
  await c.db`
    update timers
    set due_at = now() - case kind when 'enqueue' then interval '4 seconds' else interval '2 seconds' end
    where run_id = any(${runs}) and kind in ('enqueue', 'queue-timeout')`
  lookNow(c)
  for (const [i, entersInMs] of [0, 0, HOUR_MS].entries()) {
    const { status, inMs } = await untilPolled('all its time', async () => {
      const { status } = await runOf(c, runs[i]!)
      const inMs = (await timerOf(c, runs[i]!, 'queue-timeout'))?.inMs ?? 0
      return (status !== 'queued' || inMs > 60_000) && { status, inMs }
    })
    assert.equal(status, 'queued')
    assert.ok(Math.abs(inMs - entersInMs - HOUR_MS) < 60_000, `${inMs} ms`)
  }
  for (const run of runs) await c.call(ops.runs.cancel, { run })
})

test('the time in the queue of a run that has yet to enter it is not over', async () => {
  isLongAgo(c)
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'timed', delayMs: HOUR_MS })
  // As if the locks of its limits had been held: what lets it in was put off.
  await c.db`update runs set queued_at = now() - interval '3 seconds' where id = ${run.id}`
  await c.db`update timers set due_at = now() where run_id = ${run.id} and kind = 'queue-timeout'`
  lookNow(c)
  const timer = await untilPolled('a look at its time', async () => {
    const timer = await timerOf(c, run.id, 'queue-timeout')
    return (!timer || timer.inMs > 0) && { isThere: timer !== undefined }
  })
  assert.ok(timer.isThere)
  await c.db`update timers set due_at = now() where run_id = ${run.id} and kind = 'enqueue'`
  lookNow(c)
  await untilPolled('the queue', async () => (await c.db`select from run_queue where run_id = ${run.id}`).length > 0)
  assert.ok((await timerOf(c, run.id, 'queue-timeout'))!.inMs > HOUR_MS - 60_000)
  await c.call(ops.runs.cancel, { run: run.id })
})

test('a run whose turn at its throttle is still to come has all its time in the queue from then on', async () => {
  await outageEnds(c)
  const throttle = { limit: 1, per: '1h' }
  await aWorkflow(c, { slug: 'throttled', descriptor: { ...TIMED, throttle } })
  const first = await aRun(c, { workflow: 'throttled' })
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'throttled', delayMs: HOUR_MS })
  await c.db`update runs set queued_at = now() - interval '2 hours' where id = ${run.id}`
  await c.db`
    update timers
    set due_at = now() - case kind when 'enqueue' then interval '2 hours' else interval '1 hour' end
    where run_id = ${run.id} and kind in ('enqueue', 'queue-timeout')`
  lookNow(c)
  const enters = await untilPolled('its turn', async () => {
    const enqueue = await timerOf(c, run.id, 'enqueue')
    return (enqueue === undefined || enqueue.inMs > 0) && { enqueue }
  })
  assert.ok(enters.enqueue, (await runOf(c, run.id)).status)
  const [row] = await c.db<{ ms: number }[]>`
    select (extract(epoch from q.due_at - e.due_at) * 1000)::float8 as ms
    from timers e
    join timers q on q.run_id = e.run_id and q.kind = 'queue-timeout'
    where e.run_id = ${run.id} and e.kind = 'enqueue'`
  assert.ok(Math.abs(row!.ms - HOUR_MS) < 1, `${row!.ms} ms`)
  for (const { id } of [first, run]) await c.call(ops.runs.cancel, { run: id })
})

test('a run that was claimed before, and comes late back into the queue, has no more time than it had', async () => {
  isLongAgo(c)
  const { id } = await aRun(c, { workflow: 'timed' })
  const [offer] = await agent.poll(1)
  await link.accept(offer!)
  await link.report(offer!, 1, end({ how: 'unready', reason: 'no secrets' }))
  await c.db`update runs set queued_at = now() - interval '59 minutes' where id = ${id}`
  await c.db`
    update timers
    set due_at = now() + case kind when 'enqueue' then interval '-59 minutes' else interval '1 minute' end
    where run_id = ${id} and kind in ('enqueue', 'queue-timeout')`
  lookNow(c)
  await untilPolled('the queue', async () => (await c.db`select from run_queue where run_id = ${id}`).length > 0)
  assert.ok((await timerOf(c, id, 'queue-timeout'))!.inMs < 60_000)
  await c.call(ops.runs.cancel, { run: id })
})
