// What the commands of schedules ask the service for, and what they print.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { ORG, startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'
import { aRun } from '../_kit/samples.ts'

const AT = Date.UTC(2027, 0, 4, 8)

const schedule: Schedule = {
  id: newId('sch'),
  org: ORG,
  workflow: { id: newId('wf'), slug: 'report' },
  name: 'mornings',
  source: 'api',
  kind: 'cron',
  words: 'At 09:00, Monday through Friday (Europe/Zurich)',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Zurich',
  environment: null,
  environmentId: null,
  input: { days: 1 },
  jitterMs: 0,
  catchUp: 'last',
  catchUpWindowMs: 3_600_000,
  overlap: 'skip',
  enabled: true,
  pausedBy: null,
  createdAt: AT,
  createdBy: newId('key'),
  updatedAt: AT,
  nextAt: AT,
  nextTimes: [0, 1, 2, 3, 4].map((days) => AT + days * 86_400_000),
  endedAt: null,
  lastRun: null,
}

test('flags become the fields of the API, and the next five times are shown', async (t) => {
  const { url, asked } = await startFake(t, { 'schedules.create': () => ({ schedule }) })
  const flags = ['--cron', '0 9 * * 1-5', '--timezone', 'Europe/Zurich', '--name', 'mornings', '--input', '{"days":1}']
  const more = ['--jitter', '30s', '--catch-up', 'all', '--catch-up-window', '2h', '--overlap', 'skip', '--paused']
  const key = ['--idempotency-key', 'mornings']
  const { code, stdout, stderr } = await runCli(['schedules', 'create', 'report', ...flags, ...more, ...key], { url })
  assert.equal(code, 0, stderr)
  assert.deepEqual(asked[0]!.args, {
    org: ORG,
    workflow: 'report',
    cron: '0 9 * * 1-5',
    timezone: 'Europe/Zurich',
    name: 'mornings',
    input: { days: 1 },
    jitterMs: 30_000,
    catchUp: 'all',
    catchUpWindowMs: 7_200_000,
    overlap: 'skip',
    enabled: false,
    idempotencyKey: 'mornings',
  })
  assert.match(stdout, /At 09:00, Monday through Friday \(Europe\/Zurich\)/)
  assert.equal(stdout.match(/^next /gm)?.length, 5)
})

test('a rate is a length of time, and a bare number a moment', async (t) => {
  const { url, asked } = await startFake(t, { 'schedules.create': () => ({ schedule }) })
  await runCli(['schedules', 'create', 'report', '--rate', '15m', '--anchor-at', '2027-01-01T00:00:00Z'], { url })
  await runCli(['schedules', 'create', 'report', '--at', String(AT)], { url })
  const sent = asked.map(({ args }) => [args['rate'], args['anchorAt'], args['at']])
  assert.deepEqual(sent, [
    [900_000, '2027-01-01T00:00:00Z', undefined],
    [undefined, undefined, AT],
  ])
})

test('pause and resume change `enabled` alone; an update without a flag is refused here', async (t) => {
  const { url, asked } = await startFake(t, { 'schedules.update': () => ({ schedule }) })
  await runCli(['schedules', 'pause', schedule.id], { url })
  await runCli(['schedules', 'resume', schedule.id], { url })
  assert.deepEqual(
    asked.map(({ args }) => args),
    [false, true].map((enabled) => ({ schedule: schedule.id, enabled })),
  )
  const { code, stderr } = await runCli(['schedules', 'update', schedule.id], { url })
  assert.equal(code, 2)
  assert.match(stderr, /Nothing was said that is to change/)
})

test('a run by hand prints its id, and says how to follow it', async (t) => {
  const run = aRun()
  const { url, asked } = await startFake(t, { 'schedules.run': () => ({ run }) })
  const flags = ['--input', '2', '--idempotency-key', 'once']
  const { stdout, stderr } = await runCli(['schedules', 'run', schedule.id, ...flags], { url })
  const args = { schedule: schedule.id, input: 2, idempotencyKey: 'once' }
  assert.deepEqual([stdout, asked[0]!.args], [`${run.id}\n`, args])
  assert.match(stderr, new RegExp(`windlass logs -f ${run.id}`))
})

test('a list shows when each ticks next, and of one that does not, how to find out why', async (t) => {
  const ended = { ...schedule, id: newId('sch'), nextAt: null, nextTimes: [], endedAt: AT }
  const { url } = await startFake(t, {
    'schedules.list': () => ({ schedules: [schedule, ended], nextCursor: null }),
    'schedules.get': () => ({ schedule: ended }),
  })
  const { stdout } = await runCli(['schedules', 'list'], { url })
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t').slice(0, 4))
  assert.deepEqual(rows, [
    [schedule.id, 'report', 'yes', rows[0]?.[3]],
    [ended.id, 'report', 'yes', '-'],
  ])
  assert.match(rows[0]?.[3] ?? '', /^\d{4}-\d\d-\d\d /)
  const { stderr } = await runCli(['schedules', 'get', ended.id], { url })
  assert.match(stderr, new RegExp(`windlass schedules why ${ended.id}`))
})
