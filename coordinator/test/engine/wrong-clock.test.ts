// The clock of a coordinator is wrong, from its start on or from some moment on. Whether the time of a run is over
// (`timeout.wall`) goes by the clock of the database.
import assert from 'node:assert/strict'
import { after, afterEach, before, mock, test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, type Link, PATIENT_MS, returned, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { calls, parked, sleeps, stepped } from '../_kit/journal.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const real = Date.now

let c: TestCoordinator
let agent: TestAgent
let link: Link

/** Agents have the time from this clock too. */
const setClock = (aheadMs: number) => void mock.method(Date, 'now', () => real() + aheadMs)

before(async () => {
  setClock(2 * HOUR_MS)
  c = await aCoordinator()
  agent = await anAgent(c)
  link = await agent.connect()
})
afterEach(() => mock.restoreAll())
after(async () => {
  agent.close()
  await c.stop()
})

async function underWay(wall = '1h', descriptor: object = {}): Promise<Offer> {
  const { slug } = await aWorkflow(c, { descriptor: { timeout: { wall }, ...descriptor } })
  await aRun(c, { workflow: slug })
  const [offer] = await agent.poll(1, PATIENT_MS)
  await link.accept(offer!)
  return offer!
}

const outcomeOf = async ({ run }: Offer) => {
  const { status, error } = await runOf(c, run)
  return [status, error?.code ?? null]
}

/** All of its log is of now. */
async function assertTimes({ run }: Offer): Promise<void> {
  const { createdAt, startedAt, finishedAt } = await runOf(c, run)
  const log = await logOf(c, run)
  const lates = [startedAt, finishedAt, ...log.map(({ at }) => at)].map((at) => (at ?? createdAt) - createdAt)
  assert.ok(Math.max(...lates.map(Math.abs)) < MINUTE_MS, `${lates.join(', ')} ms after it was created`)
}

for (const [what, aheadMs] of [
  ['was ahead at its start', 2 * HOUR_MS],
  ['is set ahead while it serves', 5 * HOUR_MS],
  ['was ahead and is right', 0],
  ['is set back', -5 * HOUR_MS],
] as const) {
  test(`a coordinator whose clock ${what} fails no run before its time is over`, async () => {
    setClock(aheadMs)
    const { slug } = await aWorkflow(c)
    const offer = await underWay()
    const at = Date.now()
    await link.report(offer, 1, ['start', at], stepped(1, 'one'), calls(2, slug), sleeps(3, HOUR_MS), parked('sleep'))
    assert.deepEqual(await outcomeOf(offer), ['sleeping', null])
    await link.report(offer, 6, ['resume', at], end(returned(1)))
    assert.deepEqual(await outcomeOf(offer), ['completed', null])
    await assertTimes(offer)
    // What it called.
    const [child] = await agent.poll(1, PATIENT_MS)
    await link.accept(child!)
    await link.report(child!, 1, ['start', at], ['end', at, returned(1), 5])
  })

  test(`what is told late is judged by when it happened where the clock ${what}`, async () => {
    const endedAt = async (lateMs: number, ending: Ending) => {
      const offer = await underWay()
      const overAt = real() - MINUTE_MS
      await c.db`
        update runs set created_at = to_timestamp(${overAt - HOUR_MS}::float8 / 1000) where id = ${offer.run}`
      await c.db`update run_events set at = at - ${10 * MINUTE_MS} where run_id = ${offer.run}`
      await link.report(offer, 1, ['start', overAt + aheadMs - 2 * MINUTE_MS])
      await link.report(offer, 2, ['end', overAt + aheadMs + lateMs, ending, 5])
      return outcomeOf(offer)
    }
    setClock(aheadMs)
    assert.deepEqual(await endedAt(-MINUTE_MS / 2, returned(1)), ['completed', null])
    assert.deepEqual(await endedAt(MINUTE_MS / 2, returned(1)), ['failed', 'RUN_TIMED_OUT'])
  })
}

test('what was stamped before the clock was put right does not stand in the future', async () => {
  setClock(2 * HOUR_MS)
  const offer = await underWay()
  const before = Date.now()
  setClock(0)
  await link.report(offer, 1, ['start', before], ['e', before, 'log.stdout', '{"text":"on its way"}'])
  await assertTimes(offer)
  await link.report(offer, 3, end(returned(1)))
  assert.deepEqual(await outcomeOf(offer), ['completed', null])
})

test('a run that is lost where the clock is ahead has its next attempt', async () => {
  setClock(2 * HOUR_MS)
  const offer = await underWay('1h', { retries: { crash: 3 } })
  await link.report(offer, 1, ['start', Date.now()], end({ how: 'lost', reason: 'gone' }))
  assert.deepEqual(await outcomeOf(offer), ['queued', null])
})
