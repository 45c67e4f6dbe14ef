// A time that has passed, or passes while whoever names it is answered: it fires once, or is told, and never neither.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { aMovableCoordinator, aSchedule, firedBy, nowOf, passTo, settled, ticksOf, whyOf } from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const update = async ({ id }: Schedule, change: object): Promise<Schedule> =>
  (await c.call(ops.schedules.update, { schedule: id, ...change })).schedule
const once = async (ask: object = {}) =>
  aSchedule(c, { workflow: 'any', at: (await nowOf(c)) + 24 * HOUR, catchUpWindowMs: HOUR, ...ask })
const justNow = async () => (await nowOf(c)) - 20 * SECOND

/** What became of it: the ticks of its runs, and those of which it is told that there is none. */
async function outcomeOf(schedule: Schedule) {
  await settled(c)
  const fired = (await firedBy(c, schedule)).map(({ trigger }) => trigger.at)
  const gaps = (await ticksOf(c, schedule)).map(({ reason, from, to, count }) => ({ reason, from, to, count }))
  return { fired, gaps }
}

const tick = (reason: string, at: number) => ({ reason, from: at, to: at, count: 1 })

/** The clock goes on by so much while the next input is judged. */
function judgedFor(t: TestContext, ms: number): void {
  const judge = c.deps.judge.judge.bind(c.deps.judge)
  const slow = t.mock.method(c.deps.judge, 'judge', async (...ask: Parameters<typeof judge>) => {
    slow.mock.restore()
    await moveClock(c.db, ms)
    return judge(...ask)
  })
}

test('a change to a time of the last minute fires it, whatever the schedule was before', async () => {
  const before: Record<string, () => Promise<[Schedule, object?]>> = {
    'a time to come': async () => [await once()],
    'a rate': async () => [await aSchedule(c, { workflow: 'any', rate: '1h' })],
    'a time that has fired': async () => {
      const schedule = await once()
      await passTo(c, schedule.at!)
      assert.deepEqual((await outcomeOf(schedule)).fired, [schedule.at])
      return [schedule]
    },
    'paused, and resumed by the change': async () => [await once({ enabled: false }), { enabled: true }],
  }
  for (const [what, make] of Object.entries(before)) {
    const [schedule, change] = await make()
    const at = await justNow()
    const { nextAt } = await update(schedule, { at, ...change })
    assert.equal(nextAt ?? at, at)
    const { fired, gaps } = await outcomeOf(schedule)
    assert.deepEqual([fired.filter((each) => each !== schedule.at), gaps], [[at], []], what)
    assert.equal((await whyOf(c, schedule)).code, 'ENDED')
  }
})

test('a time that is named again does not fire again', async () => {
  const schedule = await once()
  const [first, second] = [await justNow(), (await justNow()) + SECOND]
  for (const at of [first, second, first]) {
    await update(schedule, { at })
    await settled(c)
  }
  assert.deepEqual(await outcomeOf(schedule), { fired: [first, second], gaps: [] })
})

test('it fires behind a tick that is due by the rule of before', async () => {
  const schedule = await aSchedule(c, { workflow: 'any', rate: '10m' })
  await c.db`update schedules set due_at = due_at + interval '10 years' where id = ${schedule.id}`
  await moveClock(c.db, schedule.nextAt! + 30 * SECOND - (await nowOf(c)))
  const at = await justNow()
  await update(schedule, { at })
  assert.deepEqual(await outcomeOf(schedule), { fired: [schedule.nextAt, at], gaps: [] })
})

test('a time that passes while the input beside it is judged fires, or is told as missed', async (t) => {
  const made = { last: await once(), skip: await once({ catchUp: 'skip' }), short: await once() }
  for (const [schedule, ms, outcome] of [
    [made.short, 5 * SECOND, 'fires'],
    [made.last, 5 * MINUTE, 'fires'],
    [made.skip, 5 * MINUTE, 'told'],
  ] as const) {
    judgedFor(t, ms)
    const at = (await nowOf(c)) + 2 * SECOND
    await update(schedule, { at, input: { a: 1 } })
    const { fired, gaps } = await outcomeOf(schedule)
    assert.deepEqual(fired, outcome === 'fires' ? [at] : [])
    // A tick that was caught up is told as well.
    assert.deepEqual(gaps, ms > MINUTE ? [tick('MISSED', at)] : [])
  }
})

test('one that is made fires as well', async (t) => {
  const at = await justNow()
  assert.deepEqual(await outcomeOf(await once({ at })), { fired: [at], gaps: [] })
  judgedFor(t, 5 * SECOND)
  const soon = (await nowOf(c)) + 2 * SECOND
  assert.deepEqual(await outcomeOf(await once({ at: soon, input: 1 })), { fired: [soon], gaps: [] })
})

test('of one that is paused it is skipped, and told', async (t) => {
  const made = await once({ at: await justNow(), enabled: false })
  assert.deepEqual(await outcomeOf(made), { fired: [], gaps: [tick('PAUSED', made.at!)] })
  judgedFor(t, 5 * SECOND)
  const soon = await once({ at: (await nowOf(c)) + 2 * SECOND, input: 1, enabled: false })
  assert.deepEqual(await outcomeOf(soon), { fired: [], gaps: [tick('PAUSED', soon.at!)] })
  const changed = await once({ enabled: false })
  const at = await justNow()
  await update(changed, { at })
  assert.deepEqual(await outcomeOf(changed), { fired: [], gaps: [tick('PAUSED', at)] })
  assert.equal((await whyOf(c, changed)).code, 'ENDED')
  for (const schedule of [made, soon, changed]) {
    const { gaps } = await outcomeOf(schedule)
    await update(schedule, { enabled: true })
    assert.deepEqual(await outcomeOf(schedule), { fired: [], gaps })
    assert.equal((await whyOf(c, schedule)).code, 'ENDED')
  }
  const pausing = await once()
  const then = await justNow()
  await update(pausing, { at: then, enabled: false })
  assert.deepEqual(await outcomeOf(pausing), { fired: [], gaps: [tick('PAUSED', then)] })
})
