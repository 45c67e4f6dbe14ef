// What `why` says of ends that come by themselves: of the time for the queue or the whole run, and of a cancel.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import type { Why } from '@windlass/shared/model/why.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { cancelThese } from '../../engine/commit/cancel.ts'
import { hear } from '../_kit/ageing.ts'
import { end, start, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import * as crews from '../_kit/crew.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { accepted, anEvictedRun, aParkedRun, type Crew, question, sleepFor } from '../_kit/waiting.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
})
afterEach(() => {
  for (const agent of agents.splice(0)) agent.close()
})
after(() => c.stop())

const whyOf = async (run: string): Promise<Why> => (await c.call(ops.runs.why, { run })).why

/** A workflow with an agent of its own. */
async function aScene(descriptor: Record<string, unknown>): Promise<{ crew: Crew; workflow: string }> {
  const { pool, workflow } = await crews.aPool(c, descriptor)
  const crew = await crews.aCrew(c, pool)
  agents.push(crew.agent)
  return { crew, workflow }
}

/** Lets a timer of the run come due, and waits for what comes of it. */
async function ripen(run: string, kind: string): Promise<void> {
  await hear(c, run)
  await c.db`update timers set due_at = now() where run_id = ${run} and kind = ${kind}`
  c.deps.timers.expect(0)
  await until(`the ${kind} of ${run}`, async () => {
    const left = await c.db`select from timers where run_id = ${run} and kind = ${kind}`
    return left.length === 0
  })
}

test('the time for the queue is told of the first attempt alone, as that of others does not end them', async () => {
  const { crew, workflow } = await aScene({ timeout: { queue: '1h' }, retries: { crash: 1 } })
  const { id } = await aRun(c, { workflow })
  assert.match((await whyOf(id)).summary, /When it has not begun by .* UTC, it fails with RUN_TIMED_OUT\.$/)
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  assert.equal((await runOf(c, id)).attempt, 2)
  const [cause] = (await whyOf(id)).causes
  assert.doesNotMatch(cause!.message, /RUN_TIMED_OUT/)
  await ripen(id, 'queue-timeout')
  assert.equal((await runOf(c, id)).status, 'queued')
})

/** Its time is over, and its agent has not stopped it yet. */
async function overtime(run: string): Promise<Why> {
  await ripen(run, 'wall-timeout')
  return whyOf(run)
}

const codesOf = ({ causes }: Why) => causes.map(({ code }) => code)
const USED_UP = /^Its time is used up: .* it fails with RUN_TIMED_OUT\./

test('a run whose time is over says so, whatever its process does', async () => {
  const { crew, workflow } = await aScene({ timeout: { wall: '1h' } })
  const asking = await aParkedRun(crew, { workflow }, question(), sleepFor())
  const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: asking.run })
  const why = await overtime(asking.run)
  assert.deepEqual([why.status, codesOf(why)], ['awaiting_input', ['CANCELLING']])
  assert.match(why.summary, USED_UP)
  assert.match(why.summary, /It takes no answer any more\./)
  await assert.rejects(c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: 1 }), refusal('INPUT_CLOSED'))

  // It has what it waited for, and a new process is led there.
  const { run } = await anEvictedRun(crew, { workflow }, sleepFor(1))
  await accepted(crew)
  assert.deepEqual(codesOf(await whyOf(run)), ['RESUMING'])
  const replaying = await overtime(run)
  assert.deepEqual([replaying.process?.place, codesOf(replaying)], ['replaying', ['CANCELLING']])

  await aRun(c, { workflow })
  const [offer] = await crew.agent.poll(1)
  const offered = await overtime(offer!.run)
  assert.deepEqual([offered.status, codesOf(offered)], ['pending', ['CANCELLING']])
  assert.match(offered.summary, USED_UP)
})

/** When the job that ends these runs in any case is due. */
async function deadlineOf(...runs: string[]): Promise<number> {
  const jobs = await c.db<{ runAt: Date; runs: { runId: string }[] }[]>`
    select run_at, payload -> 'runs' as runs
    from graphile_worker._private_jobs
    where key like 'cancel:%'`
  const [job, ...others] = jobs.filter((job) => job.runs.some(({ runId }) => runs.includes(runId)))
  assert.deepEqual([others, job!.runs.map(({ runId }) => runId).sort()], [[], runs.toSorted()])
  return job!.runAt.getTime()
}

test('a run that is stopped says when it ends in any case, also where others are stopped with it', async () => {
  const { crew, workflow } = await aScene({ timeout: { wall: '1h' }, cancelGrace: '5m' })
  const executing = async () => {
    await aRun(c, { workflow })
    const offer = await accepted(crew)
    await crew.link.report(offer, 1, start())
    return offer.run
  }
  const together = [await executing(), await executing()]
  await cancelThese(c.deps, together, { by: 'coordinator', reason: '' })
  const at = await deadlineOf(...together)
  for (const run of together) {
    const [cause] = (await whyOf(run)).causes
    assert.deepEqual([cause?.code, cause?.until], ['CANCELLING', at])
    assert.match(cause!.message, /At .* UTC it ends in any case\.$/)
  }
  const late = await executing()
  const [cause] = (await overtime(late)).causes
  assert.equal(cause!.until, await deadlineOf(late))
  assert.match(cause!.message, /At .* UTC it ends in any case\.$/)
})

test('a silent runner of a run whose time is over lets it fail, and none goes on with it', async () => {
  const { crew, workflow } = await aScene({ timeout: { wall: '1h' } })
  const { run } = await aParkedRun(crew, { workflow }, question())
  await overtime(run)
  const silent = await untilPolled('the runner to be silent', async () => {
    const at = new Date(Date.now() - 40_000)
    await c.db`update runners set last_heartbeat_at = ${at}, last_poll_at = null where id = ${crew.agent.id}`
    const why = await whyOf(run)
    return codesOf(why).includes('RUNNER_SILENT') && why
  })
  assert.deepEqual(codesOf(silent), ['RUNNER_SILENT', 'CANCELLING'])
  assert.match(silent.summary, /When it is not heard of until .* UTC, it fails with RUN_TIMED_OUT\.$/)
  assert.match(silent.causes[1]!.message, /If it ended before that and its agent tells so later, that counts\./)
})

test('a run whose program was told that its time is over says so, and when it ends in any case', async () => {
  const { crew, workflow } = await aScene({ timeout: { active: '1h' }, cancelGrace: '5m' })
  await aRun(c, { workflow })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), ['resume', Date.now(), 'timed-out'])
  const why = await whyOf(offer.run)
  assert.deepEqual([why.status, codesOf(why)], ['running', ['CANCELLING']])
  assert.match(why.summary, USED_UP)
  const [cause] = why.causes
  assert.match(cause!.message, / At .* UTC it ends in any case\./)
  assert.equal(cause!.until, await deadlineOf(offer.run))
})
