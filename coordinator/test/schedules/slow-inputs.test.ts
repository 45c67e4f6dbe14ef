// Inputs that are slow to judge keep the ticks of other orgs waiting no longer than a pass.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aMovableCoordinator, aSchedule, firedBy, nowOf } from '../_kit/schedules.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { until } from '../_kit/until.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

const SLOW = 12
/** Each takes a second, as it ends the process that judges it. */
const IN_LINE = 12
/** Of a regular expression that goes back and forth for longer than a judge may take. */
const schema = { type: 'object', properties: { x: { type: 'string', pattern: '^(a+)+$' } } }
const inputOf = (n: number) => ({ x: `${'a'.repeat(40 + n)}!` })

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

test('ticks of an org fire while those of another are being decided', async () => {
  const other = asOwner(c, await anOrg(c))
  const slow = await aWorkflow(c)
  const schedules = await Promise.all(
    Array.from({ length: SLOW }, (_, n) => aSchedule(c, { workflow: slow.slug, rate: '1h', input: inputOf(n) })),
  )
  await aVersion(c, slow, { inputSchema: schema })
  const { slug } = await aWorkflow(other)
  const fine = await aSchedule(other, { workflow: slug, rate: '1h' })
  // Those of the other org are due last.
  await moveClock(c.db, fine.nextAt! + 1000 - (await nowOf(c)))
  c.deps.scheduleTimers.expect(0)
  const dueOf = async (ids: readonly string[]) =>
    (await c.deps.db`select from schedules where id in ${c.deps.db(ids)} and due_at <= now()`).length
  await until('the tick of the other org', async () => (await dueOf([fine.id])) === 0)
  assert.ok((await dueOf(schedules.map(({ id }) => id))) > 0, 'the slow ones are not through')
})

test('ticks of an org fire while those of another stand in the line of all that it has judged', async () => {
  const other = asOwner(c, await anOrg(c))
  const slow = await aWorkflow(c)
  const waits = await aSchedule(c, { workflow: slow.slug, rate: '1h', input: inputOf(0) })
  await aVersion(c, slow, { inputSchema: schema })
  const { slug } = await aWorkflow(other)
  const fine = await aSchedule(other, { workflow: slug, rate: '1h' })
  let left = IN_LINE
  const line = Array.from({ length: IN_LINE }, async (_, n) => {
    await assert.rejects(c.call(ops.runs.trigger, { org: c.org, workflow: slow.slug, input: inputOf(n + 1) }))
    left--
  })
  await until('they stand in line', async () => left < IN_LINE)
  await moveClock(c.db, Math.max(waits.nextAt!, fine.nextAt!) + 1000 - (await nowOf(c)))
  c.deps.scheduleTimers.expect(0)
  await until('the tick of the other org', async () => (await firedBy(other, fine)).length > 0)
  assert.ok(left > 0, 'the line is not through')
  await Promise.all(line)
})

test('a schedule catches up more ticks than may wait for being judged', async () => {
  const { slug } = await aWorkflow(c, {
    // A pattern is judged in a process of its own.
    inputSchema: { type: 'object', properties: { x: { type: 'string', pattern: '^x+$' } } },
  })
  const schedule = await aSchedule(c, { workflow: slug, rate: '10s', catchUp: 'all', input: { x: 'xxx' } })
  await moveClock(c.db, schedule.nextAt! + 1_200_000 - (await nowOf(c)))
  c.deps.scheduleTimers.expect(0)
  await until('its ticks', async () => (await firedBy(c, schedule)).length >= 100)
})
