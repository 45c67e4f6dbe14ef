import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, anOrg, aRun, asOwner, type TestCoordinator } from '../../_kit/coordinator.ts'
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
    const isQueued = async (id: string) => (await c.db`select from run_queue where run_id = ${id}`).length === 1
    await untilPolled('the run of the other org', () => isQueued(other.id))
    assert.equal(await isQueued(ours.id), false)
    held.resolve()
    await holding
    const isFired = async () =>
      (await c.db`select from timers where run_id = ${ours.id} and due_at < now() + interval '1 minute'`).length === 0
    await untilPolled('the own run', isFired)
  })
