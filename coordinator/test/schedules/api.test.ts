// What may be asked of schedules over the API, and what is said of what may not.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { entriesOf } from '../_kit/audit.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { aCoordinator, anOrg, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { pagesOf } from '../_kit/pages.ts'
import { aSchedule, scheduleOf } from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  const inputSchema = { type: 'object', properties: { a: { type: 'number' } } }
  await aWorkflow(c, { slug: 'strict', inputSchema })
})
after(() => c.stop())

const create = (ask: object) => c.call(ops.schedules.create, { org: c.org, workflow: 'strict', input: {}, ...ask })

test('exactly one of cron, rate and at, each with what goes with it', async () => {
  for (const [ask, path] of [
    [{}, 'cron'],
    [{ cron: '* * * * *', rate: '1h' }, 'rate'],
    [{ rate: '1h', timezone: 'UTC' }, 'timezone'],
    [{ cron: '* * * * *', anchorAt: 0 }, 'anchorAt'],
    [{ rate: '9s' }, 'rate'],
    [{ rate: '367d' }, 'rate'],
    [{ rate: 'often' }, 'rate'],
    [{ cron: '@daily' }, 'cron'],
    [{ cron: '0 9 * * FRI-MON' }, 'cron'],
    [{ cron: '* * * * *', timezone: 'UTC+2' }, 'timezone'],
    [{ cron: '* 1 * 3 7L', timezone: 'Europe/London' }, 'cron'],
    [{ at: Date.now() - 120_000 }, 'at'],
    [{ at: Math.floor(Date.now() / 1000) }, 'at'],
    [{ at: '2027-01-31T09:00:00' }, 'at'],
    [{ rate: '1h', jitterMs: 3_600_001 }, 'jitterMs'],
    [{ rate: '1h', catchUpWindowMs: 604_800_001 }, 'catchUpWindowMs'],
    [{ rate: '1h', overlap: 'queue' }, 'overlap'],
    [{ rate: '1h', environment: 'nowhere' }, 'environment'],
    [{ rate: '1h', input: { a: 'text' } }, 'input.a'],
    [{ rate: '1h', name: '' }, 'name'],
  ] as const)
    await assert.rejects(create(ask), refusal('VALIDATION_FAILED', path), JSON.stringify(ask))
  await assert.rejects(create({ at: 1_800_000_000 }), /seconds\? Give milliseconds, 1800000000000/)
  await assert.rejects(create({ rate: '1h', input: { b: 'x'.repeat(70_000) } }), refusal('PAYLOAD_TOO_LARGE', 'input'))
  await assert.rejects(create({ rate: '1h', workflow: 'nothing' }), refusal('NOT_FOUND'))
})

test('the answer says in words and in five times when it ticks', async () => {
  const { schedule } = await create({ cron: '0 0 13 * FRI', timezone: 'europe/kyiv', name: 'odd' })
  assert.deepEqual(
    [schedule.words, schedule.timezone],
    ['At 00:00, on day 13 of the month or on Friday (Europe/Kyiv)', 'Europe/Kyiv'],
  )
  assert.equal(schedule.nextTimes.length, 5)
  assert.equal(schedule.nextTimes[0], schedule.nextAt)
})

test('an edit keeps what it does not name, and each change is in the audit log once', async () => {
  const schedule = await aSchedule(c, { workflow: 'strict', rate: '1h', input: { a: 1 }, name: 'first' })
  const update = (change: object) => c.call(ops.schedules.update, { schedule: schedule.id, ...change })
  const edited = (await update({ cron: '*/5 * * * *', timezone: 'Asia/Tokyo', overlap: 'skip' })).schedule
  assert.deepEqual(
    [edited.kind, edited.cron, edited.timezone, edited.rateMs, edited.overlap, edited.name, edited.input],
    ['cron', '*/5 * * * *', 'Asia/Tokyo', undefined, 'skip', 'first', { a: 1 }],
  )
  await update({ timezone: 'UTC' })
  await update({ timezone: 'UTC' })
  await assert.rejects(update({ input: { a: 'text' } }), refusal('VALIDATION_FAILED', 'input.a'))
  await assert.rejects(update({ anchorAt: 0 }), refusal('VALIDATION_FAILED', 'anchorAt'))
  await update({ name: null, enabled: false })
  assert.deepEqual([(await scheduleOf(c, schedule)).name, (await scheduleOf(c, schedule)).enabled], [null, false])
  await c.call(ops.schedules.delete, { schedule: schedule.id })
  await assert.rejects(scheduleOf(c, schedule), refusal('NOT_FOUND'))
  assert.deepEqual(
    (await entriesOf(c, { target: schedule.id })).map(({ action }) => action).toSorted(),
    ['create', 'delete', 'update', 'update', 'update'].map((name) => `schedules.${name}`),
  )
})

test('schedules are listed page by page, of one workflow too, and ticks as well', async () => {
  const { slug } = await aWorkflow(c)
  const made = []
  for (let n = 0; n < 3; n++) made.push((await aSchedule(c, { workflow: slug, rate: '1h' })).id)
  const first = await c.call(ops.schedules.list, { org: c.org, workflow: slug, limit: 2 })
  const cursor = first.nextCursor!
  const second = await c.call(ops.schedules.list, { org: c.org, workflow: slug, limit: 2, cursor })
  const listed = [...first.schedules, ...second.schedules].map(({ id }) => id)
  assert.deepEqual([listed, second.nextCursor], [made.toReversed(), null])
  assert.deepEqual((await c.call(ops.schedules.list, { org: c.org, workflow: 'nothing' })).schedules, [])
  const bad = Buffer.from('sch').toString('base64url')
  await assert.rejects(c.call(ops.schedules.list, { org: c.org, cursor: bad }), refusal('VALIDATION_FAILED', 'cursor'))
})

test('a revoke leaves the schedules of its key running, and says how many', async () => {
  const { id, key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'maker', role: 'member' })
  const ask = { org: c.org, workflow: 'strict', input: {}, rate: '1h' }
  const made = (await c.call(ops.schedules.create, ask, { apiKey: key })).schedule
  const gone = (await c.call(ops.schedules.create, ask, { apiKey: key })).schedule
  await c.call(ops.schedules.delete, { schedule: gone.id })
  assert.equal((await c.call(ops.keys.revoke, { org: c.org, key: id })).schedules, 1)
  assert.equal((await scheduleOf(c, made)).nextAt, made.nextAt)
})

test("another org's schedule is not there", async () => {
  const schedule = await aSchedule(c, { workflow: 'strict', rate: '1h', input: {} })
  const { apiKey } = await anOrg(c)
  const given = { schedule: schedule.id }
  for (const row of ['get', 'update', 'delete', 'run', 'ticks', 'why'] as const)
    await assert.rejects(c.call(ops.schedules[row], given, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.schedules.get, { schedule: newId('sch') }), refusal('NOT_FOUND'))
  assert.equal((await scheduleOf(c, schedule)).enabled, true)
})

test('a page of schedules with large inputs has fewer of them, and leads on to the others', async () => {
  const { slug } = await aWorkflow(c)
  const input = 'x'.repeat(60_000)
  for (let n = 0; n < 20; n++) await create({ workflow: slug, rate: '1h', input })
  const pages = await pagesOf(
    (page) => c.call(ops.schedules.list, { org: c.org, workflow: slug, limit: 100, ...page }),
    ({ schedules }) => schedules.map(({ id }) => id),
  )
  assert.deepEqual(
    pages.map((page) => page.length),
    [17, 3],
  )
  assert.equal(new Set(pages.flat()).size, 20)
})
