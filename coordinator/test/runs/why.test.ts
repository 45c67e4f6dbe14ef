import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Why } from '@windlass/shared/model/why.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { end, returned, start, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, anOrg, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import * as crews from '../_kit/crew.ts'
import { untilPolled } from '../_kit/until.ts'
import {
  aBlockedRun,
  accepted,
  aParkedRun,
  anEvictedRun,
  call,
  type Crew,
  question,
  sleepFor,
} from '../_kit/waiting.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
})
afterEach(() => {
  for (const agent of agents.splice(0)) agent.close()
})
after(() => c.stop())

const whyOf = async (run: string): Promise<Why> => (await c.call(ops.runs.why, { run: run })).why
const codesOf = (why: Why) => why.causes.map((cause) => cause.code)

const aPool = (descriptor?: Record<string, unknown>) => crews.aPool(c, descriptor)

async function aCrew(pool: string, slots?: number): Promise<Crew> {
  const crew = await crews.aCrew(c, pool, slots)
  agents.push(crew.agent)
  return crew
}

test('a queued run whose pool is empty says how to add a runner', async () => {
  const { pool, workflow } = await aPool()
  const run = await aRun(c, { workflow })
  const why = await whyOf(run.id)
  assert.deepEqual([why.status, why.since, why.process, why.runners], ['queued', run.queuedAt, null, []])
  assert.deepEqual(codesOf(why), ['NO_RUNNER'])
  assert.equal(why.summary, `The pool \`${pool}\` has no runner.`)
  assert.match(why.causes[0]!.change, new RegExp(`windlass pools token ${pool}`))
})

test('busy runners and the runs before it are told, with how many', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool, 1)
  await aRun(c, { workflow })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start())
  await aRun(c, { workflow })
  await aRun(c, { workflow, priority: 5 })
  const last = await aRun(c, { workflow })
  const why = await whyOf(last.id)
  assert.deepEqual(codesOf(why), ['RUNNERS_BUSY', 'RUNS_AHEAD'])
  assert.match(why.causes[0]!.message, /has a free slot; all are busy/)
  assert.match(why.causes[1]!.message, /^2 runs of the pool/)
  assert.match(why.runners[0]!.reason, /no free slot \(1 of 1 taken\)/)
  assert.equal((await whyOf((await aRun(c, { workflow, priority: 9 })).id)).causes.length, 1)
})

test('a parked process takes no slot', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool, 1)
  await aParkedRun(crew, { workflow }, sleepFor())
  const { runners } = await whyOf((await aRun(c, { workflow })).id)
  assert.match(runners[0]!.reason, /0 of 1 slots taken/)
})

test('a delayed run says when it enters the queue, and a retried one that it pauses', async () => {
  const { workflow } = await aPool()
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow, delayMs: 3_600_000 })
  const [cause] = (await whyOf(run.id)).causes
  assert.equal(cause?.code, 'DELAYED')
  assert.ok(Math.abs(cause.until! - run.createdAt - 3_600_000) < 5000)
  await c.db`update runs set attempt = 2 where id = ${run.id}`
  const [again] = (await whyOf(run.id)).causes
  assert.deepEqual([again?.code, again?.until], ['RETRY_BACKOFF', cause.until])
  assert.match(again!.message, /^Attempt 1 ended without success; attempt 2 enters/)
})

test('a later attempt that its agent could not prepare says that, and not that it pauses', async () => {
  const { pool, workflow } = await aPool({ retries: { crash: 2 } })
  const crew = await aCrew(pool)
  const { id } = await aRun(c, { workflow })
  await crew.link.report(await accepted(crew), 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  const unready = end({ how: 'unready', reason: 'its secrets could not be read', blame: 'service' })
  await crew.link.report(await accepted(crew), 1, unready)
  assert.equal((await runOf(c, id)).attempt, 2)
  const [cause] = (await whyOf(id)).causes
  assert.equal(cause?.code, 'PUT_OFF')
  assert.match(cause.message, /^Its agent could not prepare it/)
})

test('a run over the limit of its workflow names those that hold it', async () => {
  const { workflow } = await aPool({ concurrency: 2 })
  const held = [await aRun(c, { workflow }), await aRun(c, { workflow })]
  await aRun(c, { workflow })
  const run = await aRun(c, { workflow })
  const [cause, ...more] = (await whyOf(run.id)).causes
  assert.deepEqual([cause?.code, more], ['CONCURRENCY_LIMIT', []])
  assert.deepEqual(
    cause?.runIds,
    held.map(({ id }) => id),
  )
  assert.match(cause.message, /2 runs of its group are under way\. 1 run before it\./)
})

test('an offered and an executing run name their runner, and since when', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool)
  const { id } = await aRun(c, { workflow })
  const offer = await accepted(crew)
  const starting = await whyOf(id)
  assert.deepEqual(
    [starting.status, codesOf(starting), starting.process],
    ['pending', ['STARTING'], { place: 'starting', runner: { id: crew.agent.id, name: 'east-1' } }],
  )
  const at = Date.now()
  await crew.link.report(offer, 1, start(at))
  const executing = await whyOf(id)
  assert.deepEqual(
    [executing.status, codesOf(executing), executing.process?.place],
    ['running', ['EXECUTING'], 'executing'],
  )
  assert.equal(executing.since, at)
  assert.match(executing.summary, /executes on the runner east-1, attempt 1\. Its runner was last heard of at/)
})

test('behind a long log a later attempt counts from its own begin', async () => {
  const { pool, workflow } = await aPool({ retries: { crash: 1 } })
  const crew = await aCrew(pool)
  const { id } = await aRun(c, { workflow })
  await crew.link.report(await accepted(crew), 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  const lost = await runOf(c, id)
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start())
  assert.equal((await whyOf(id)).causes[0]?.code, 'EXECUTING')
  // As if it had written so many lines; nothing else looks at them here.
  await c.db`update runs set cursor = cursor + 5500, started_at = started_at - interval '3 days' where id = ${id}`
  const { since, causes } = await whyOf(id)
  assert.deepEqual([since, causes[0]?.since], [(await runOf(c, id)).claimedAt, since])
  assert.ok(since >= lost.queuedAt, 'it counts from the attempt before')
})

test('a silent runner is told first, with when the run is taken from it', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool)
  await aRun(c, { workflow })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start())
  // Again and again: that it polled is noted some milliseconds late.
  const silent = await untilPolled('the runner to be silent', async () => {
    await c.db`update runners set last_heartbeat_at = now() - interval '40 seconds', last_poll_at = null where id = ${crew.agent.id}`
    const why = await whyOf(offer.run)
    return codesOf(why).includes('RUNNER_SILENT') && why
  })
  assert.deepEqual(codesOf(silent), ['RUNNER_SILENT', 'EXECUTING'])
  assert.match(silent.summary, /east-1 was last heard of 40 s ago\. When it is not heard of until .* UTC, it is given/)
  await c.db`update placements set lease_expires_at = now() - interval '1 second' where run_id = ${offer.run}`
  assert.match(
    (await whyOf(offer.run)).summary,
    /Its lease ran out at .* UTC: with the next look, within .*, it is given to another runner/,
  )
  await c.db`
    insert into lengthenings_owed select run_id, epoch, now(), now(), 0 from placements where run_id = ${offer.run}`
  assert.match((await whyOf(offer.run)).summary, /when the session of the database that holds its row has ended, it is/)
})

test('a waiting run lists every open wait with its place in the program, its process and how to answer', async () => {
  const { pool, workflow } = await aPool()
  const other = await aPool()
  const crew = await aCrew(pool)
  const timed = question({ prompt: 'Ship\nit?', timeoutMs: 1000_000 })
  const withDefault = question({ timeoutMs: 1000_000, onTimeoutText: `"${'x'.repeat(1_000_000)}"` })
  const asks = [sleepFor(60_000), timed, call(other.workflow), withDefault]
  const { run } = await aParkedRun(crew, { workflow }, ...asks)
  const why = await whyOf(run)
  assert.deepEqual([why.status, codesOf(why)], ['awaiting_input', ['SLEEP', 'INPUT', 'CHILD', 'INPUT']])
  assert.deepEqual(why.process, { place: 'parked', runner: { id: crew.agent.id, name: 'east-1' } })
  const [sleep, input, child, defaulted] = why.causes
  assert.deepEqual([sleep!.at, input!.at, child!.at], ['index.ts:1:1', 'index.ts:2:1', 'index.ts:3:1'])
  assert.ok(sleep!.until! > Date.now() && sleep!.until! < Date.now() + 61_000)
  assert.match(input!.message, /^It waits for an answer until .* UTC; then the call fails\. It asks: Ship it\?$/)
  assert.match(input!.change, new RegExp(`windlass inputs respond ${input!.inputId} `))
  assert.match(
    child!.message,
    new RegExp(`^It waits for ${child!.childRunId} of ${other.workflow}, which is queued\\.$`),
  )
  assert.match(child!.change, new RegExp(`windlass runs why ${child!.childRunId}`))
  assert.match(defaulted!.message, /; then it goes on with the answer that its program has set for that\. It asks/)
  assert.match(why.summary, /^It waits for 2 answers, 1 called run and 1 sleep\.$/)

  const evicted = await anEvictedRun(crew, { workflow }, sleepFor())
  const rest = await whyOf(evicted.run)
  assert.deepEqual([codesOf(rest), rest.process, rest.runners], [['SLEEP'], null, []])
})

test('a run whose answer is there and that nobody executes yet is resuming, and the runners are told', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool)
  const answer = async (run: string) => {
    const { inputs } = await c.call(ops.inputs.list, { org: c.org, run: run })
    await c.call(ops.inputs.respond, { input: inputs[0]!.id, answer: 1 })
  }
  const parked = await aParkedRun(crew, { workflow }, question())
  await answer(parked.run)
  const soon = await whyOf(parked.run)
  assert.deepEqual([codesOf(soon), soon.process?.place], [['RESUMING'], 'parked'])
  assert.match(soon.summary, /as soon as the runner east-1 has heard of it and has a free slot/)
  const since = soon.causes[0]!.since!
  assert.ok(since > soon.since, 'it counts from the answer, not from the question')
  // Shorter than what makes it silent.
  const before = new Date(since - 1000)
  // The note of its last poll may be on its way still, and would count as a sign of life.
  await untilPolled('the runner to be unheard of', async () => {
    await c.db`update runners set last_poll_at = ${before}, last_heartbeat_at = null where id = ${crew.agent.id}`
    return /east-1 has not been heard of since/.test((await whyOf(parked.run)).summary)
  })

  const evicted = await anEvictedRun(crew, { workflow }, question(), sleepFor())
  await answer(evicted.run)
  const queued = await untilPolled('nobody to be there', async () => {
    await c.db`update runners set last_poll_at = now() - interval '5 minutes', last_heartbeat_at = null where id = ${crew.agent.id}`
    const why = await whyOf(evicted.run)
    return codesOf(why).includes('NO_RUNNER') && why
  })
  assert.deepEqual(codesOf(queued), ['RESUMING', 'NO_RUNNER', 'SLEEP'])
  assert.equal(queued.runners.length, 1)

  await accepted(crew)
  await crew.link.heartbeat(1)
  const replaying = await whyOf(evicted.run)
  assert.deepEqual([codesOf(replaying), replaying.process?.place], [['RESUMING', 'SLEEP'], 'replaying'])
})

test('a blocked run tells what was recorded, what came, where, and the three ways out', async () => {
  const { pool, workflow } = await aPool()
  const { run } = await aBlockedRun(await aCrew(pool), { workflow })
  const why = await whyOf(run)
  assert.deepEqual([codesOf(why), why.process], [['BLOCKED'], null])
  const [cause] = why.causes
  assert.equal(cause?.at, 'index.ts:14:3')
  const { events } = await c.call(ops.runs.events, { run })
  assert.equal(cause.since, events.find(({ type }) => type === 'run.blocked')?.at)
  assert.match(cause.message, /sleep\(1000\) at index\.ts:12:9.*sleep\(2000\) at index\.ts:14:3/)
  for (const way of ['restart', 'retry', 'cancel'])
    assert.match(cause.change, new RegExp(`windlass runs ${way} ${run}`))
})

test('a run that is being cancelled tells who asked and when it ends in any case', async () => {
  const { pool, workflow } = await aPool({ cancelGrace: '1s' })
  const crew = await aCrew(pool)
  await aRun(c, { workflow })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start())
  await c.call(ops.runs.cancel, { run: offer.run })
  const [cause] = (await whyOf(offer.run)).causes
  assert.equal(cause?.code, 'CANCELLING')
  assert.match(cause.message, /was asked for by key_\w+; .* At .* UTC it ends in any case\./)
  assert.ok(cause.until! > Date.now())
  await crew.link.report(offer, 2, end({ how: 'cancelled', forced: false }))
})

test('a finished run says how it ended', async () => {
  const { pool, workflow } = await aPool()
  const crew = await aCrew(pool)
  await aRun(c, { workflow })
  const done = await accepted(crew)
  await crew.link.report(done, 1, start(), end(returned(1)))
  const why = await whyOf(done.run)
  assert.deepEqual([why.status, codesOf(why), why.process], ['completed', ['FINISHED'], null])
  await aRun(c, { workflow })
  const failed = await accepted(crew)
  await crew.link.report(failed, 1, start(), end({ how: 'exited', exitCode: 3 }))
  assert.match((await whyOf(failed.run)).summary, /^It failed\. PROGRAM_EXITED: /)
})

test("another org's run and an unknown one look absent", async () => {
  const { workflow } = await aPool()
  const { id } = await aRun(c, { workflow })
  const { apiKey } = await anOrg(c)
  const { why, children, restart } = ops.runs
  for (const [run, options] of [
    [id, { apiKey }],
    [newId('run'), {}],
  ] as const) {
    await assert.rejects(c.call(why, { run }, options), refusal('NOT_FOUND'))
    await assert.rejects(c.call(children, { run }, options), refusal('NOT_FOUND'))
    await assert.rejects(c.call(restart, { run }, options), refusal('NOT_FOUND'))
  }
})
