// Schedules of a descriptor stay themselves over deploys, and follow what the current version says.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aMovableCoordinator, firedBy, nowOf, passTo, scheduleOf, ticksOf, whyOf } from '../_kit/schedules.ts'
import { filesOf } from '../_kit/workflow-files.ts'
import { aVersion, aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

const of = async ({ id }: TestWorkflow): Promise<Schedule[]> =>
  (await c.call(ops.schedules.list, { org: c.org, workflow: id })).schedules.toReversed()

const deploy = (workflow: TestWorkflow, schedules: unknown[]) => aVersion(c, workflow, { descriptor: { schedules } })
const deployed = (schedules: unknown[]) => aWorkflow(c, { descriptor: { schedules } })

test('a rate beside four deploys an hour fires on time', async () => {
  const schedules = [{ rate: '6h', input: 1 }]
  const workflow = await deployed(schedules)
  const [before] = await of(workflow)
  for (let quarter = 1; quarter <= 24; quarter++) {
    await passTo(c, before!.anchorAt! + quarter * 15 * MINUTE - 5 * MINUTE)
    await deploy(workflow, [{ ...schedules[0], input: quarter }])
  }
  await passTo(c, before!.nextAt!)
  const [after, ...others] = await of(workflow)
  assert.deepEqual([after!.id, after!.anchorAt, others.length], [before!.id, before!.anchorAt, 0])
  const [run, ...more] = await firedBy(c, before!)
  assert.deepEqual([run!.trigger.at, run!.workflow.version, more.length], [before!.nextAt, 25, 0])
  assert.equal((await c.call(ops.runs.input, { run: run!.id })).input, 24)
  await deploy(workflow, [])
})

test('a deploy makes them, and a version that is made current again brings its own back', async () => {
  const files = (schedules: unknown[]) =>
    filesOf({
      'workflow.jsonc': JSON.stringify({ slug: 'rolled', schedules }),
      'index.ts': 'export async function run() { return 1 }\n',
    })
  const { org } = c
  const first = [{ name: 'first', cron: '0 9 * * 1-5', timezone: 'europe/zurich', overlap: 'skip' }]
  const { version } = await c.call(ops.workflows.create, { org, files: files(first) })
  assert.deepEqual(version.warnings, [])
  const named = async () => (await c.call(ops.schedules.list, { org, workflow: 'rolled' })).schedules
  const [made] = await named()
  assert.deepEqual([made!.timezone, made!.source, made!.overlap], ['Europe/Zurich', 'descriptor', 'skip'])
  assert.equal(made!.createdBy, version.createdBy)
  await c.call(ops.workflows.update, { org, workflow: 'rolled', files: files([{ name: 'second', rate: '1h' }]) })
  assert.deepEqual(
    (await named()).map(({ name }) => name),
    ['second'],
  )
  await c.call(ops.workflows.promote, { org, workflow: 'rolled', version: 1 })
  assert.deepEqual(
    (await named()).map(({ id, nextAt }) => [id, nextAt === null]),
    [[made!.id, false]],
  )
  const wrong = files([{ cron: '5/15 * * * *' }])
  await assert.rejects(c.call(ops.workflows.update, { org, workflow: 'rolled', files: wrong }), /5-59\/15/)
  const past = await c.call(ops.workflows.update, { org, workflow: 'rolled', files: files([{ at: 1 }]) })
  assert.match(past.version.warnings.join(), /has passed/)
})

test('one that was paused stays so over deploys, and is itself when it comes back', async () => {
  const workflow = await deployed([{ name: 'nightly', cron: '0 3 * * *', timezone: 'Europe/Zurich' }])
  const [schedule] = await of(workflow)
  assert.equal(schedule!.timezone, 'Europe/Zurich')
  await c.call(ops.schedules.update, { schedule: schedule!.id, enabled: false })
  await deploy(workflow, [{ name: 'nightly', cron: '30 4 * * *', overlap: 'skip', jitter: '5m' }])
  const edited = await scheduleOf(c, schedule!)
  assert.deepEqual(
    [edited.enabled, edited.pausedBy !== null, edited.cron, edited.overlap, edited.jitterMs],
    [false, true, '30 4 * * *', 'skip', 5 * MINUTE],
  )
  await deploy(workflow, [])
  assert.deepEqual(await of(workflow), [])
  assert.equal((await whyOf(c, schedule!)).code, 'ENDED')
  await deploy(workflow, [{ name: 'nightly', cron: '30 4 * * *' }])
  const [back] = await of(workflow)
  assert.deepEqual([back!.id, back!.enabled, back!.endedAt], [schedule!.id, false, null])
  const resumed = (await c.call(ops.schedules.update, { schedule: back!.id, enabled: true })).schedule
  assert.ok(resumed.nextAt! > (await nowOf(c)))
  await deploy(workflow, [])
})

test('without a name it is the same by what says when, and its place among equals', async () => {
  const workflow = await deployed([{ rate: '1h', input: 'a' }, { rate: '1h', input: 'b' }, { rate: '2h' }])
  const before = await of(workflow)
  await deploy(workflow, [{ rate: '2h' }, { rate: '1h', input: 'c' }])
  const after = await of(workflow)
  assert.deepEqual(
    after.map(({ id, input }) => [id, input]),
    [
      [before[0]!.id, 'c'],
      [before[2]!.id, null],
    ],
  )
  await deploy(workflow, [])
})

test('a tick that is due at the deploy fires once, also of what the deploy takes away or changes', async () => {
  const workflow = await deployed([
    { name: 'gone', rate: '1h' },
    { name: 'other', rate: '1h' },
  ])
  const [gone, other] = await of(workflow)
  // Nobody looks before the deploy does: it is one transaction with the move of the clock.
  await c.deps.db.begin(async (tx) => {
    await tx`update shifted.clock set by = by + interval '1 hour 1 second'`
  })
  await deploy(workflow, [{ name: 'other', rate: '10m' }])
  await passTo(c, other!.nextAt! + 2000)
  for (const schedule of [gone!, other!])
    assert.deepEqual(
      (await firedBy(c, schedule)).map(({ trigger }) => trigger.at),
      [schedule.nextAt],
    )
  assert.equal((await scheduleOf(c, gone!)).nextAt, null)
  assert.equal((await scheduleOf(c, other!)).nextAt, other!.anchorAt! + 70 * MINUTE)
  await deploy(workflow, [])
})

test('a time that has passed is recorded as missed, once', async () => {
  const at = (await nowOf(c)) - HOUR
  const workflow = await deployed([{ at }])
  const [schedule] = await of(workflow)
  assert.deepEqual([schedule!.nextAt, schedule!.endedAt === null], [null, false])
  await deploy(workflow, [{ at, input: 1 }])
  const ticks = await ticksOf(c, schedule!)
  assert.deepEqual(
    ticks.map(({ outcome, from, count }) => [outcome, from, count]),
    [['missed', at, 1]],
  )
  assert.deepEqual(await firedBy(c, schedule!), [])
})

test('of one of the descriptor only `enabled` changes over the API', async () => {
  const workflow = await deployed([{ rate: '1h' }])
  const [schedule] = await of(workflow)
  const update = (change: object) => c.call(ops.schedules.update, { schedule: schedule!.id, ...change })
  await assert.rejects(update({ rate: '2h' }), refusal('SCHEDULE_OF_DESCRIPTOR', 'rate'))
  await assert.rejects(update({ enabled: false, name: 'x' }), refusal('SCHEDULE_OF_DESCRIPTOR', 'name'))
  await assert.rejects(c.call(ops.schedules.delete, { schedule: schedule!.id }), refusal('SCHEDULE_OF_DESCRIPTOR'))
  assert.equal((await update({ enabled: false })).schedule.enabled, false)
  assert.equal((await update({ enabled: true })).schedule.pausedBy, null)
  await deploy(workflow, [])
})

test('while its workflow is disabled its ticks are skipped, and none is caught up', async () => {
  const workflow = await deployed([{ rate: '10m' }])
  const [schedule] = await of(workflow)
  await c.call(ops.workflows.disable, { org: c.org, workflow: workflow.slug })
  for (const n of [0, 1]) await passTo(c, schedule!.nextAt! + n * 10 * MINUTE)
  assert.equal((await whyOf(c, schedule!)).code, 'WORKFLOW_DISABLED')
  await c.call(ops.workflows.enable, { org: c.org, workflow: workflow.slug })
  await passTo(c, schedule!.nextAt! + 20 * MINUTE)
  assert.deepEqual(
    (await firedBy(c, schedule!)).map(({ trigger }) => [trigger.at, trigger.catchUp]),
    [[schedule!.nextAt! + 20 * MINUTE, false]],
  )
  assert.deepEqual(
    (await ticksOf(c, schedule!)).map(({ reason, count }) => [reason, count]),
    [['WORKFLOW_DISABLED', 2]],
  )
  await deploy(workflow, [])
})
