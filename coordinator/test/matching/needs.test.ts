import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Link, start, type TestAgent } from '../_kit/agent.ts'
import { sweepRunsOnce } from '../../engine/sweep/sweep.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { anEvictedRun, call, question, sleepFor } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const NEEDS = '2|eu,gpu'

let c: TestCoordinator
let plain: TestAgent
let fitting: TestAgent
let link: Link

before(async () => {
  c = await aCoordinatorOfItsOwn({ SWEEP_RUNS_MS: 3_600_000 })
  const descriptor = { labels: ['gpu', 'eu'], slots: 2 }
  await aWorkflow(c, { slug: 'special', descriptor })
  await aWorkflow(c, { slug: 'narrow', descriptor: { ...descriptor, concurrency: 1 } })
  await aWorkflow(c, { slug: 'plain' })
  plain = await anAgent(c, { name: 'plain', slots: 4 })
  fitting = await anAgent(c, { name: 'fitting', slots: 4, labels: ['gpu', 'eu', 'more'] })
  link = await fitting.connect()
})
after(async () => {
  for (const agent of [plain, fitting]) agent.close()
  await c.stop()
})

/** The run is in the queue with what it needs; the agents without that are not given it, and the other one is. */
async function isTaken(id: string) {
  const row = await until('a row in the queue', async () => {
    const rows = await c.db<{ needs: string }[]>`select needs from run_queue where run_id = ${id}`
    return rows[0]
  })
  assert.equal(row.needs, NEEDS)
  assert.deepEqual(await plain.poll(4, 0), [])
  assert.deepEqual(await fitting.poll(1, 0), [])
  const [offer] = await fitting.poll(3)
  assert.deepEqual([offer?.run, offer?.slots], [id, 2])
  const [placed] = await c.db<{ slots: number }[]>`select slots from placements where run_id = ${id}`
  assert.equal(placed?.slots, 2)
  await link.accept(offer!)
  return offer!
}

const crew = () => ({ c, agent: { ...fitting, poll: () => fitting.poll(2) }, link })

test('a run needs the same in its first attempt, after a crash, and in its retry', async () => {
  const { id } = await aRun(c, { workflow: 'special' })
  const first = await isTaken(id)
  await link.report(first, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  const second = await isTaken(id)
  assert.equal(second.attempt, 2)
  await link.report(second, 1, start(), end({ how: 'exited', exitCode: 1 }))
  const { run } = await c.call(ops.runs.retry, { run: id })
  await link.report(await isTaken(run.id), 1, start(), end({ how: 'exited', exitCode: 1 }))
})

test('so does one that was started with a delay, and one that waited for its turn', async () => {
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'special', delayMs: 50 })
  await link.report(await isTaken(run.id), 1, start(), end({ how: 'exited', exitCode: 1 }))
  const [one, two] = [await aRun(c, { workflow: 'narrow' }), await aRun(c, { workflow: 'narrow' })]
  const offer = await isTaken(one.id)
  await link.report(offer, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  const again = await isTaken(one.id)
  await link.report(again, 1, start(), end({ how: 'exited', exitCode: 1 }))
  await link.report(await isTaken(two.id), 1, start(), end({ how: 'exited', exitCode: 1 }))
})

test('so does one that continues, by an answer or by the sweeper, and one that is called', async () => {
  const asking = await anEvictedRun(crew(), { workflow: 'special' }, question())
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: asking.run })
  await c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: 1 })
  const answered = await isTaken(asking.run)
  assert.equal(answered.replay, true)
  await c.call(ops.runs.cancel, { run: asking.run })
  await link.report(answered, 1, end({ how: 'cancelled', forced: false }))

  const asleep = await anEvictedRun(crew(), { workflow: 'special' }, sleepFor())
  await c.db`
    update journal
    set state = 'done', result = 'null', completion = nextval('journal_completions')
    where run_id = ${asleep.run}`
  await c.db`delete from timers where run_id = ${asleep.run}`
  assert.equal(await sweepRunsOnce(c.deps), 1)
  const continued = await isTaken(asleep.run)
  await c.call(ops.runs.cancel, { run: asleep.run })
  await link.report(continued, 1, end({ how: 'cancelled', forced: false }))

  const parent = await anEvictedRun(
    { ...crew(), agent: plain, link: await plain.connect() },
    { workflow: 'plain' },
    call('special'),
  )
  const [child] = await c.db<[{ id: RunId }]>`select id from runs where parent_run_id = ${parent.run}`
  await link.report(await isTaken(child.id), 1, start(), end({ how: 'exited', exitCode: 1 }))
  assert.equal((await runOf(c, child.id)).status, 'failed')
})
