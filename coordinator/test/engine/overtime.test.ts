// The time of a run (`timeout.wall`) is noted to be over while its agent is out of reach. What the agent tells when it
// is back is judged by when it happened.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, type Link, PATIENT_MS, returned, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { asks, calls, identity, parked, said, sleeps, stepped, wakeOf } from '../_kit/journal.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const threw: Ending = { how: 'threw', error: { name: 'Error', message: 'no luck' } }

interface Late {
  offer: Offer
  /** When its time was over. */
  overAt: number
  /** A moment before that, at which its program was under way. */
  inTimeAt: number
}

/** The next run of this agent, whose time was over half a minute ago; its program began half a minute before that. */
async function underWay(): Promise<Late> {
  const [offer] = await agent.poll(1, PATIENT_MS)
  await link.accept(offer!)
  await c.db`
    update runs set created_at = now() - ${HOUR_MS + MINUTE_MS / 2} * interval '1 millisecond' where id = ${offer!.run}`
  await c.db`update run_events set at = at - ${2 * MINUTE_MS} where run_id = ${offer!.run}`
  const overAt = (await runOf(c, offer!.run)).createdAt + HOUR_MS
  await link.report(offer!, 1, ['start', overAt - MINUTE_MS / 2])
  return { offer: offer!, overAt, inTimeAt: overAt - MINUTE_MS / 3 }
}

/** The timer fires, and the agent is told to stop. */
async function timeIsOver({ run }: Pick<Offer, 'run'>): Promise<void> {
  await c.db`update runners set connected_at = null, last_heartbeat_at = now() where id = ${agent.id}`
  await c.db`update timers set due_at = now() where run_id = ${run} and kind = 'wall-timeout'`
  c.deps.floors.timers.lower(Date.now() - 2 * MINUTE_MS)
  c.deps.timers.expect(0)
  for (;;) {
    const { runs } = await link.next('cancel')
    if (runs.some((order) => order.run === run && order.why === 'timed-out')) return
  }
}

/** A run whose time was noted to be over, of a workflow with this descriptor. */
async function aLateRun(descriptor: object = {}): Promise<Late> {
  const { slug } = await aWorkflow(c, { descriptor: { timeout: { wall: '1h' }, ...descriptor } })
  await aRun(c, { workflow: slug })
  const late = await underWay()
  await timeIsOver(late.offer)
  return late
}

const endAt = (at: number, ending: Ending): Entry => ['end', at, ending, 5]
const lineAt = (at: number): Entry => ['e', at, 'log.stdout', '{"text":"on its way"}']
const at = (time: number, entry: Entry): Entry => entry.with(1, time) as unknown as Entry

const outcome = ({ status, error }: Run) => [status, error?.code ?? null]
const OVERTIME = ['failed', 'RUN_TIMED_OUT']

async function endOf({ run }: Pick<Offer, 'run'>): Promise<Run> {
  const found = await runOf(c, run)
  assert.ok(found.finishedAt !== null, found.status)
  const rest = await c.db`
    select 'placement' as what from placements where run_id = ${run}
    union all
    select 'timer' from timers where run_id = ${run}
    union all
    select 'queue' from run_queue where run_id = ${run}`
  assert.deepEqual([...rest], [])
  return found
}

test('a run that returned in time completes, though its agent tells it later', async () => {
  const { offer, inTimeAt } = await aLateRun()
  const entries = [at(inTimeAt, stepped(1, 'one')), lineAt(inTimeAt), endAt(inTimeAt, returned({ total: 3 }))]
  assert.deepEqual(await link.report(offer, 2, ...entries), { kind: 'ack', seq: 4 })
  assert.deepEqual(outcome(await endOf(offer)), ['completed', null])
  assert.deepEqual(await c.call(ops.runs.output, { run: offer.run }), { output: { total: 3 } })
  const log = await logOf(c, offer.run)
  assert.deepEqual(
    log.map(({ type }) => type),
    ['run.queued', 'run.pending', 'run.running', 'log.stdout', 'output', 'run.completed'],
  )
  assert.equal(log.at(-1)?.at, inTimeAt)
  const [row] = await c.db`select timed_out_at from runs where id = ${offer.run}`
  assert.equal(row!['timedOutAt'], null)
  const { why } = await c.call(ops.runs.why, { run: offer.run })
  assert.deepEqual(
    why.causes.map(({ code }) => code),
    ['FINISHED'],
  )
})

test('a run that ended in time without success fails with its own error', async () => {
  for (const [ending, code] of [
    [threw, 'PROGRAM_FAILED'],
    [{ how: 'exited', exitCode: 3 }, 'PROGRAM_EXITED'],
    [{ how: 'returned', outputText: 'no JSON' }, 'OUTPUT_INVALID'],
  ] as const) {
    const { offer, inTimeAt } = await aLateRun()
    await link.report(offer, 2, endAt(inTimeAt, ending))
    assert.deepEqual(outcome(await endOf(offer)), ['failed', code])
  }
})

test('a run that threw in time has no next attempt when its time is over meanwhile', async () => {
  for (const descriptor of [
    { retries: { error: { max: 3, delay: 0 } } },
    { retries: { error: { max: 3, delay: 0 } }, concurrency: 1 },
    { retries: { error: { max: 3, delay: '1h' }, onCrash: 'fresh' }, concurrency: 1 },
  ]) {
    const { offer, overAt, inTimeAt } = await aLateRun(descriptor)
    await link.report(offer, 2, at(inTimeAt, stepped(1, 'one')), endAt(inTimeAt, threw))
    assert.deepEqual(outcome(await endOf(offer)), OVERTIME)
    const log = (await logOf(c, offer.run)).slice(-3)
    assert.deepEqual(
      log.map((event) => [event.type, event.at]),
      [
        ['run.restarted', inTimeAt],
        ['run.queued', inTimeAt],
        ['run.failed', overAt],
      ],
    )
    assert.match(JSON.stringify(log[0]?.data), /no luck/)
    // Its slot in the group is free.
    const next = await aRun(c, { workflow: offer.workflow.slug })
    const second = await underWay()
    assert.equal(second.offer.run, next.id)
    await link.report(second.offer, 2, endAt(second.inTimeAt, returned(1)))
  }
})

test('a run that ends when its time is over fails for that, however it ends', async () => {
  for (const ending of [returned(1), threw] as const) {
    const { offer, overAt } = await aLateRun()
    await link.report(offer, 2, endAt(overAt, ending))
    assert.deepEqual(outcome(await endOf(offer)), OVERTIME)
  }
})

test('what its agent makes of a run is no end in time', async () => {
  for (const ending of [
    { how: 'timed-out', timeoutMs: 1000 },
    { how: 'cancelled', forced: true },
    { how: 'killed', signal: 'SIGKILL' },
    { how: 'lost', reason: 'gone' },
    { how: 'evicted', reason: 'age' },
  ] as const) {
    const { offer, overAt, inTimeAt } = await aLateRun({ retries: { crash: 0 } })
    await link.report(offer, 2, endAt(inTimeAt, ending))
    const run = await endOf(offer)
    assert.deepEqual([...outcome(run), run.error?.detail], [...OVERTIME, { wallTimeoutMs: HOUR_MS }])
    assert.equal((await logOf(c, offer.run)).at(-1)?.at, overAt)
  }
})

test('no end was before what was told before it, and none of the future was in time', async () => {
  const written = await aLateRun()
  await link.report(written.offer, 2, lineAt(written.overAt + 1000))
  await link.report(written.offer, 3, endAt(written.inTimeAt, returned(1)))
  assert.deepEqual(outcome(await endOf(written.offer)), OVERTIME)
  const together = await aLateRun()
  await link.report(together.offer, 2, lineAt(together.overAt), endAt(together.inTimeAt, returned(1)))
  assert.deepEqual(outcome(await endOf(together.offer)), OVERTIME)
  const future = await aLateRun()
  await link.report(future.offer, 2, endAt(Date.now() + HOUR_MS, returned(1)))
  assert.deepEqual(outcome(await endOf(future.offer)), OVERTIME)
})

test('no end is in time that comes after the note that the time is over, whatever the clocks say', async () => {
  const { offer } = await aLateRun()
  // As by a clock of the database that was ahead when it was created.
  await c.db`update runs set created_at = now() + interval '1 hour' where id = ${offer.run}`
  await link.report(offer, 2, endAt(Date.now(), returned(1)))
  assert.deepEqual(outcome(await endOf(offer)), OVERTIME)
})

test('a run that is being cancelled is cancelled, also when it ended in time', async () => {
  const { offer, inTimeAt } = await aLateRun()
  await c.call(ops.runs.cancel, { run: offer.run })
  await link.report(offer, 2, endAt(inTimeAt, returned(1)))
  assert.deepEqual(outcome(await endOf(offer)), ['cancelled', null])
})

test('what a program asked for in time exists, and nothing of what it asks for later', async () => {
  const { slug } = await aWorkflow(c)
  const { offer, overAt, inTimeAt } = await aLateRun()
  const open = said({ op: 'open', entry: identity(1, 'step'), ask: { for: 'step' } })
  const early = [open, calls(2, slug), sleeps(3, HOUR_MS), asks(4)].map((entry) => at(inTimeAt, entry))
  const late = [calls(5, slug), asks(6), parked('child')].map((entry) => at(overAt, entry))
  await link.report(offer, 2, ...early, ...late)
  const rows = await c.db`select n, kind, state from journal where run_id = ${offer.run} order by n`
  assert.deepEqual(
    rows.map((row) => [row['n'], row['kind'], row['state']]),
    [
      [1, 'step', 'open'],
      [2, 'child', 'open'],
      [3, 'sleep', 'open'],
      [4, 'input', 'open'],
    ],
  )
  // It is still being stopped.
  assert.equal((await runOf(c, offer.run)).status, 'waiting_for_child')
  const [row] = await c.db`select timed_out_at from runs where id = ${offer.run}`
  assert.notEqual(row!['timedOutAt'], null)
  await link.report(offer, 9, endAt(overAt + 1, { how: 'timed-out', timeoutMs: 1000 }))
  assert.deepEqual(outcome(await endOf(offer)), OVERTIME)
  const child = await agent.poll(1, PATIENT_MS)
  await link.accept(...child)
  await link.report(child[0]!, 1, ['start', Date.now()], endAt(Date.now(), returned(1)))
})

test('a call of a child that ended in time gets what it returned', async () => {
  const { slug: timed } = await aWorkflow(c, { descriptor: { timeout: { wall: '1h' } } })
  const { slug } = await aWorkflow(c)
  await aRun(c, { workflow: slug })
  const [parent] = await agent.poll(1, PATIENT_MS)
  await link.accept(parent!)
  await link.report(parent!, 1, ['start', Date.now()], calls(1, timed), parked('child'))
  const child = await underWay()
  await timeIsOver(child.offer)
  await link.report(child.offer, 2, endAt(child.inTimeAt, returned('in time')))
  const { completions } = await wakeOf(link, parent!)
  assert.deepEqual(
    completions.map(({ n, state, result }) => [n, state, result]),
    [[1, 'done', '"in time"']],
  )
  await link.report(parent!, 4, ['resume', Date.now()], endAt(Date.now(), returned(1)))
  assert.equal((await runOf(c, parent!.run)).status, 'completed')
})

test('lists by status find all of these runs', () => assertInStep(c.db, c.orgId))
