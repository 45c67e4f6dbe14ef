import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
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
