import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, PATIENT_MS, returned, start } from '../../_kit/agent.ts'
import { untilBlocked } from '../../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { underWay } from '../../_kit/under-way.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** Which of these runs have a row in the queue, and which have a slot. */
async function rowsOf(ids: string[]) {
  const queued = await c.db<{ id: string }[]>`select run_id as id from run_queue where run_id = any(${ids})`
  const counted = await c.db<{ id: string }[]>`select run_id as id from concurrency_slots where run_id = any(${ids})`
  const numbers = (rows: { id: string }[]) => rows.map(({ id }) => ids.indexOf(id)).sort((a, b) => a - b)
  return { queued: numbers(queued), counted: numbers(counted) }
}

test('a run that is cancelled in the hand of a claim gives its place to the next, and the limit holds', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { concurrency: 2 } })
  const ids: string[] = []
  for (let i = 0; i < 3; i++) ids.push((await aRun(c, { workflow: slug })).id)
  const [first, second, third] = ids as [string, string, string]
  const agent = await anAgent(c)
  const link = await agent.connect()
  let polling: Promise<Offer[]> | undefined
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${first} for update`
    polling = agent.poll(4, PATIENT_MS)
    // The claim has the rows of the first two in the queue, and waits for the first run.
    await untilBlocked(c.db, '%demands as %')
    await c.call(ops.runs.cancel, { run: second })
    assert.deepEqual(await rowsOf(ids), { queued: [0, 1, 2], counted: [0, 2] })
    assert.deepEqual([...(await underWay(c.db))], [{ slug, n: 2, uncounted: 0 }])
  })
  const offers = (await polling)!
  assert.deepEqual(
    offers.map(({ run }) => run),
    [first],
  )
  assert.deepEqual(await rowsOf(ids), { queued: [2], counted: [0, 2] })
  const [last] = await agent.poll(4, PATIENT_MS)
  assert.ok(last)
  assert.equal(last.run, third)
  for (const offer of [...offers, last]) {
    await link.accept(offer)
    await link.report(offer, 1, start(), end(returned(1)))
  }
  assert.deepEqual(await rowsOf(ids), { queued: [], counted: [] })
  const { status, attempt } = await runOf(c, second)
  assert.deepEqual({ status, attempt }, { status: 'cancelled', attempt: 1 })
})
