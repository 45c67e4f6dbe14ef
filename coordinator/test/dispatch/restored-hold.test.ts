import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Caller } from '../../actor.ts'
import { beginEpoch } from '../../db/cluster.ts'
import { whyOf } from '../../runs/why.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aCrew, aPool } from '../_kit/crew.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** A coordinator that starts so long after a restore. */
async function restored(secondsAgo: number): Promise<TestCoordinator> {
  await c.db.begin((tx) => beginEpoch(tx))
  await c.db`update cluster set begun_at = now() - ${secondsAgo} * interval '1 second'`
  return c.another()
}

const codesOf = async (at: TestCoordinator, run: string) =>
  (await at.call(ops.runs.why, { run })).why.causes.map(({ code }) => code)

test('after a restore no run is given out until agents of before must have ended what they held', async () => {
  const { pool, workflow } = await aPool(c)
  const { agent } = await aCrew(c, pool)
  const { id } = await aRun(c, { workflow })
  const soon = await restored(0)
  assert.deepEqual(await agent.at(soon).poll(1, 500), [])
  const { orgId, org } = c
  const owner: Caller = { kind: 'key', id: newId('key'), name: 'test', orgId, org, role: 'owner', scopes: [] }
  // As many at once as there are connections: none waits for a second one.
  const asked = Array.from({ length: 8 }, () => whyOf(soon.deps, owner, id))
  for (const each of await Promise.all(asked)) assert.equal(each.causes[0]?.code, 'DATABASE_RESTORED')
  const { why } = await soon.call(ops.runs.why, { run: id })
  const [cause] = why.causes
  assert.equal(cause?.code, 'DATABASE_RESTORED')
  assert.match(cause.message, new RegExp(`The pool \`${pool}\` gives no run out until`))
  assert.ok(cause.until! > why.since)
  await soon.stop()

  // Longer than the 75 s for which agents hold runs by default.
  const later = await restored(80)
  assert.ok(!(await codesOf(later, id)).includes('DATABASE_RESTORED'))
  const offers = await agent.at(later).poll()
  assert.deepEqual(
    offers.map(({ run }) => run),
    [id],
  )
  agent.close()
})

test('a pool whose agents may be silent for longer waits for longer', async () => {
  const { pool, workflow } = await aPool(c)
  const { agent } = await aCrew(c, pool)
  const { id } = await aRun(c, { workflow })
  await c.call(ops.pools.update, { pool, settings: { reassignAfterMs: 600_000 } })
  const byPool = await restored(590)
  assert.deepEqual(await codesOf(byPool, id), ['DATABASE_RESTORED'])
  await byPool.stop()
  // As one of its agents was told before the setting was taken back.
  await c.call(ops.pools.update, { pool, settings: { reassignAfterMs: null } })
  await c.db`update runners set told_fence_ms = 575_000 where id = ${agent.id}`
  const byAgent = await restored(590)
  assert.deepEqual(await agent.at(byAgent).poll(1, 500), [])
  agent.close()
})

test('where the agents were stopped as well, runs are given out at once', async () => {
  const { pool, workflow } = await aPool(c)
  const { agent } = await aCrew(c, pool)
  const { id } = await aRun(c, { workflow })
  await c.db.begin((tx) => beginEpoch(tx, { areAgentsStopped: true }))
  const soon = await c.another()
  const [offer] = await agent.at(soon).poll()
  assert.equal(offer?.run, id)
  agent.close()
})
