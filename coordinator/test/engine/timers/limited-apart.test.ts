import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, anOrg, aRun, asOwner, type TestCoordinator } from '../../_kit/coordinator.ts'
import { holdLimit } from '../../_kit/held-locks.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

const aDelayed = async (owner: TestCoordinator, workflow: string) =>
  (await owner.call(ops.runs.trigger, { org: owner.org, workflow, delayMs: 3_600_000 })).run

for (const what of ['throttle', 'concurrency'] as const)
  test(`timers of others do not wait for the ${what} of an org`, async () => {
    const theirs = asOwner(c, await anOrg(c))
    const limited = await aWorkflow(c, { descriptor: { throttle: { limit: 2, per: '1s' }, concurrency: 1 } })
    const free = await aWorkflow(theirs)
    await aRun(c, { workflow: limited.slug })
    const held = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const holding = c.db.begin(async (tx) => {
      await (what === 'throttle'
        ? tx`select from throttles where starts_with(key, ${limited.id}) for update`
        : tx`select pg_advisory_xact_lock(hashtextextended(${limited.id}, 0))`)
      locked.resolve()
      await held.promise
    })
    await locked.promise
    const [ours, other] = [await aDelayed(c, limited.slug), await aDelayed(theirs, free.slug)]
    // Due together, ours first.
    await c.db`
      update timers
      set due_at = now() - case when run_id = ${ours.id} then interval '1 minute' else interval '1 second' end
      where run_id in (${ours.id}, ${other.id}) and kind = 'enqueue'`
    c.deps.floors.timers.lower(Date.now() - 120_000)
    const isQueued = async (id: string) => (await c.db`select from run_queue where run_id = ${id}`).length === 1
    await untilPolled('the run of the other org', () => isQueued(other.id))
    assert.equal(await isQueued(ours.id), false)
    held.resolve()
    await holding
    const isFired = async () =>
      (await c.db`select from timers where run_id = ${ours.id} and due_at < now() + interval '1 minute'`).length === 0
    await untilPolled('the own run', isFired)
  })

// With 60,000 runs in the limits of one org the sleeps of another came up to 9 s late.
test('timers that come due while an org waits for its own locks do not wait with it', async () => {
  const [theirs, limitedToo] = [asOwner(c, await anOrg(c)), asOwner(c, await anOrg(c))]
  const slow = await aWorkflow(c, { descriptor: { concurrency: 1 } })
  const free = await aWorkflow(theirs)
  const limited = await aWorkflow(limitedToo, { descriptor: { concurrency: 5 } })
  const held = await holdLimit(c, slow.id)
  const ours = await aDelayed(c, slow.slug)
  const nowDue = async (...ids: string[]) => {
    await c.db`update timers set due_at = now() where run_id = any(${ids}) and kind = 'enqueue'`
    c.deps.timers.expect(0)
  }
  const isQueued = async (id: string) => (await c.db`select from run_queue where run_id = ${id}`).length === 1
  // It gives up after a second, which may be over before a busy machine has done the others.
  const isStillWaiting = async () => {
    const due = await c.db`select from timers where run_id = ${ours.id} and kind = 'enqueue' and due_at <= now()`
    return due.length === 1 && (await held.isWaitedFor())
  }
  let round = 0
  for (let isApart = false; !isApart; round++) {
    assert.ok(round < 5, 'others were done only when it had given up')
    const others = [await aDelayed(theirs, free.slug), await aDelayed(limitedToo, limited.slug)]
    await nowDue(ours.id)
    await held.waitedFor()
    await nowDue(...others.map(({ id }) => id))
    for (const { id } of others) await untilPolled('the run of another org', () => isQueued(id))
    isApart = await isStillWaiting()
  }
  await held.release()
  await untilPolled('the own run', async () => {
    const left = await c.db`select from timers where run_id = ${ours.id} and kind = 'enqueue'`
    return left.length === 0
  })
})
