import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { firstIdAt } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { retentionTurn } from '../../retention/work.ts'
import { aCoordinatorOfItsOwn, logOf, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const DAY_MS = 86_400_000

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
})
after(() => c.stop())

test('deliveries go with their payloads, also with those that lie beside the database', async () => {
  const { org } = c
  await aWorkflow(c, { slug: 'taker' })
  const hook = await aHook(c, await aSession(c.db, { orgId: c.orgId }), 'taker')
  const large = (text: string) => JSON.stringify({ text: text.repeat(200_000) })
  const ids: string[] = []
  for (const body of [large('a'), large('b'), '{}']) ids.push((await deliver(hook, { body })).receipt.delivery.id)
  const folder = join(c.deps.config.home, 'objects', 'deliveries')
  const files = async () => (await readdir(folder)).toSorted()
  const turn = (days: number) =>
    retentionTurn(
      { ...c.deps, databaseClock: { now: () => Date.now() + days * DAY_MS, aheadMs: () => 0 } },
      { orgId: c.orgId },
    )
  assert.deepEqual(await files(), ids.slice(0, 2).toSorted(), 'each has its own')
  await c.call(ops.retention.update, { org, deliveriesDays: 7 })
  await turn(6)
  assert.equal((await files()).length, 2)
  await turn(8)
  assert.deepEqual(await files(), [])
  for (const delivery of ids) await assert.rejects(c.call(ops.deliveries.get, { delivery }), refusal('NOT_FOUND'))
  const left = await c.db`
    select 1 from delivery_matches where delivery_id = any(${ids}) union all select 1 from object_removals`
  assert.equal(left.length, 0)
  const { runs } = await c.call(ops.runs.list, { org, trigger: 'webhook', limit: 5 })
  assert.equal(runs.length, 3, 'what they have started stays')
  assert.ok((await logOf(c, runs[0]!.id)).length > 0)
  const [entry] = (await c.call(ops.audit.list, { org, action: ['retention.delete'] })).auditEntries
  assert.deepEqual(entry?.after, { deliveries: 3, first: ids.toSorted()[0], last: ids.toSorted().at(-1) })
})

test('a delivery that is new is kept, whatever the clock that made its id', async () => {
  const { org } = c
  await aWorkflow(c, { slug: 'clocks' })
  const hook = await aHook(c, await aSession(c.db, { orgId: c.orgId }), 'clocks')
  const { delivery } = (await deliver(hook, { body: '{}' })).receipt
  const id = firstIdAt('dlv', Date.now() - 30 * DAY_MS)
  await c.db`update deliveries set id = ${id} where id = ${delivery.id}`
  await c.call(ops.retention.update, { org, deliveriesDays: 7 })
  await c.db`update retention set acts_at = now()`
  await retentionTurn(c.deps, { orgId: c.orgId })
  assert.equal((await c.db`select from deliveries where id = ${id}`).length, 1)
})

test('a payload that cannot be removed keeps no other, and turns come to an end', async () => {
  const bad = ['deliveries/dlv_0', 'deliveries/dlv_1']
  const all = [...bad, 'deliveries/dlv_2', 'deliveries/dlv_3']
  await c.db`insert into object_removals (key) select unnest(${all}::text[])`
  const asked: string[] = []
  const objects = {
    delete: async (key: string) => {
      asked.push(key)
      if (bad.includes(key)) throw new Error('not permitted')
      return true
    },
  }
  await retentionTurn({ ...c.deps, objects }, { orgId: c.orgId })
  assert.deepEqual(asked, all)
  const left = await c.db<{ key: string }[]>`select key from object_removals order by key`
  assert.deepEqual(
    left.map(({ key }) => key),
    bad,
  )
  await c.db`delete from object_removals`
  await c.db`insert into object_removals (key) select 'deliveries/dlv_' || i from generate_series(1000, 1400) i`
  const failing = { delete: () => Promise.reject(new Error('away')) }
  await retentionTurn({ ...c.deps, objects: failing }, { orgId: c.orgId }, 0)
  assert.equal((await c.db`select from graphile_worker.jobs where key = ${`retention:${c.orgId}`}`).length, 0)
  await retentionTurn(c.deps, { orgId: c.orgId }, 60_000)
  assert.equal((await c.db`select from object_removals`).length, 0)
})
