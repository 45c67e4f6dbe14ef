// The time of an attempt (`timeout.active`) is over, its program is told so, and what becomes of it after that.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, end, type Held, returned, type TestAgent } from '../_kit/agent.ts'
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinator, aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { stepped } from '../_kit/journal.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let sweeping: TestCoordinator
const agents: TestAgent[] = []
const TIMEOUT_MS = 60_000

before(async () => {
  c = await aCoordinator()
  sweeping = await aCoordinatorOfItsOwn(SWEEPING)
  const retries = { error: { max: 3, delay: 0 }, crash: 3 }
  for (const one of [c, sweeping])
    await aWorkflow(one, { slug: 'undoes', descriptor: { timeout: { active: '1m' }, retries } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await Promise.all([c.stop(), sweeping.stop()])
})

const TIME_USED_UP: Entry = ['resume', Date.now(), 'timed-out']
const threw: Ending = { how: 'threw', error: { name: 'TimeoutError', message: 'the time is over' } }
const lost: Ending = { how: 'lost', reason: 'its agent was killed' }

async function held(on: TestCoordinator): Promise<Held> {
  await aRun(on, { workflow: 'undoes' })
  const one = await aRunningAgent(on)
  agents.push(one.agent)
  return one
}

const outcome = ({ status, attempt, error }: Run) => [status, attempt, error?.code, error?.detail]
const OUT_OF_TIME = ['failed', 1, 'RUN_TIMED_OUT', { timeoutMs: TIMEOUT_MS }]

for (const ending of [
  lost,
  threw,
  returned(1),
  { how: 'timed-out', timeoutMs: 1 },
  { how: 'exited', exitCode: 1 },
] as const)
  test(`one that was told that its time is over has no next attempt, however it ends: ${ending.how}`, async () => {
    const apart = await held(c)
    assert.deepEqual(await apart.link.report(apart.offer, 2, stepped(1, 'charge'), TIME_USED_UP), {
      kind: 'ack',
      seq: 3,
    })
    await apart.link.report(apart.offer, 4, stepped(2, 'refund'))
    // By its program's clock it may have been before that.
    await apart.link.report(apart.offer, 5, ['end', 1, ending, 10])
    assert.deepEqual(outcome(await runOf(c, apart.offer.run)), OUT_OF_TIME)
    const together = await held(c)
    await together.link.report(together.offer, 2, stepped(1, 'charge'), TIME_USED_UP, end(ending))
    assert.deepEqual(outcome(await runOf(c, together.offer.run)), OUT_OF_TIME)
  })

test('one whose agent is silent after that fails when the lease is over', async () => {
  const { agent, link, offer } = await held(sweeping)
  await link.report(offer, 2, TIME_USED_UP)
  agent.close()
  await ageLeases(sweeping, offer.run)
  await untilPolled('it is lost', async () => (await runOf(sweeping, offer.run)).finishedAt !== null)
  assert.deepEqual(outcome(await runOf(sweeping, offer.run)), OUT_OF_TIME)
})

test('one that is cancelled after that is cancelled', async () => {
  const { link, offer } = await held(c)
  await link.report(offer, 2, TIME_USED_UP)
  await c.call(ops.runs.cancel, { run: offer.run })
  await link.report(offer, 3, end({ how: 'timed-out', timeoutMs: 1 }))
  assert.equal((await runOf(c, offer.run)).status, 'cancelled')
})

test('one of which no agent says that it was told goes on as before', async () => {
  const { link, offer } = await held(c)
  await link.report(offer, 2, ['resume', Date.now()], end(lost))
  const run = await runOf(c, offer.run)
  assert.deepEqual([run.status, run.attempt], ['queued', 2])
  await c.call(ops.runs.cancel, { run: offer.run })
})
