import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type PoolId } from '@windlass/shared/ids.ts'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { moveMark } from '../../engine/sweep/mark.ts'
import { poolSettingsOf } from '../../runners/pool-settings.ts'
import { anAgent, keyPair, registration } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinator, anOrg, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKey } from '../_kit/credentials.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

type Settings = ArgsOf<typeof ops.pools.update>['settings']

async function aPool(name: string, settings: Settings = {}): Promise<PoolId> {
  return (await c.call(ops.pools.create, { org: c.org, name, settings })).runnerPool.id
}
const update = async (pool: PoolId, settings: Settings) =>
  (await c.call(ops.pools.update, { pool, settings })).runnerPool.settings
const remove = (pool: PoolId) => c.call(ops.pools.delete, { pool })

const DEFAULTS = PoolSettings.parse({})

test('a pool has the settings that it was created with, and defaults for the rest', async () => {
  const settings: Settings = { isolation: 'bubblewrap', network: 'none', labels: ['gpu'], limits: { memoryMb: 512 } }
  const id = await aPool('made', settings)
  const { runnerPool } = await c.call(ops.pools.get, { pool: id })
  const limits = { ...DEFAULTS.limits, memoryMb: 512 }
  assert.deepEqual(runnerPool.settings, { ...DEFAULTS, ...settings, limits })
  assert.deepEqual([runnerPool.name, runnerPool.runners, runnerPool.queuedRuns], ['made', 0, 0])
})

test('a change leaves what it does not name, and null takes a value back', async () => {
  const id = await aPool('changed', { slots: 4, limits: { memoryMb: 512, cpus: 2 }, drainMs: 1000 })
  const after = await update(id, { slots: null, limits: { cpus: null, openFiles: 100 }, labels: ['a'] })
  const limits = { ...DEFAULTS.limits, memoryMb: 512, openFiles: 100 }
  assert.deepEqual(after, { ...DEFAULTS, labels: ['a'], limits, drainMs: 1000 })
  assert.deepEqual(await poolSettingsOf(c.deps, id), after)
})

test('a change is logged with what was set before, the same again is none', async () => {
  const id = await aPool('logged', { slots: 4 })
  const [entry, ...more] = await entriesBy(c, () => Promise.all([1, 2, 3].map(() => update(id, { slots: 5 }))))
  assert.deepEqual(more, [])
  assert.deepEqual([entry?.action, entry?.before, entry?.after], ['pools.update', { slots: 4 }, { slots: 5 }])
  assert.deepEqual(await entriesBy(c, () => update(id, { parkedMs: null, isolation: 'process' })), [])
})

test('an org has 500 pools at most, also when several are made at once', async () => {
  const org = await anOrg(c)
  const { apiKey, slug } = org
  const create = (name: string) => c.call(ops.pools.create, { org: slug, name }, { apiKey })
  await c.db`
    insert into runner_pools (id, org_id, name, settings)
    select 'pool_' || lpad(to_hex(n), 26, '0'), ${org.id}, 'p' || n, '{}' from generate_series(1, 493) n`
  const asked = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => create(`more-${i}`)))
  const made = asked.filter((one) => one.status === 'fulfilled')
  assert.equal(made.length, 6)
  await assert.rejects(create('too-much'), refusal('VALIDATION_FAILED', 'name'))
  // What was deleted does not count, and counts again when it comes back.
  const { id } = made[0]!.value.runnerPool
  await c.call(ops.pools.delete, { pool: id }, { apiKey })
  await create('in-its-place')
  await assert.rejects(create(made[0]!.value.runnerPool.name), refusal('VALIDATION_FAILED', 'name'))
})

test('changes at once are all made', async () => {
  const id = await aPool('at-once')
  const asked: Settings[] = [{ slots: 3 }, { labels: ['x'] }, { limits: { cpus: 1 } }, { limits: { memoryMb: 64 } }]
  await Promise.all(asked.map((settings) => update(id, settings)))
  const { settings } = (await c.call(ops.pools.get, { pool: id })).runnerPool
  assert.deepEqual([settings.slots, settings.labels, settings.limits.cpus, settings.limits.memoryMb], [3, ['x'], 1, 64])
})

test('no network without bubblewrap is refused, however the two come together', async () => {
  const alone = { network: 'none' } as const
  await assert.rejects(aPool('alone', alone), refusal('VALIDATION_FAILED', 'settings.network'))
  const id = await aPool('boxed', { ...alone, isolation: 'bubblewrap' })
  await assert.rejects(update(id, { isolation: 'process' }), refusal('VALIDATION_FAILED', 'settings.network'))
  assert.equal((await update(id, { isolation: 'process', network: 'host' })).network, 'host')
  await assert.rejects(update(id, alone), refusal('VALIDATION_FAILED', 'settings.network'))
  await assert.rejects(update(id, { slots: 0 }), refusal('VALIDATION_FAILED', 'settings.slots'))
})

test('another coordinator sees a change after a moment, without being told', async () => {
  const other = await c.another()
  const id = await aPool('seen')
  assert.equal((await poolSettingsOf(other.deps, id)).slots, null)
  await update(id, { slots: 7 })
  assert.equal((await poolSettingsOf(c.deps, id)).slots, 7)
  other.deps.poolSettings.forget(id)
  assert.equal((await poolSettingsOf(other.deps, id)).slots, 7)
  await other.stop()
})

test('an empty pool is deleted with its tokens, and gone for everybody', async () => {
  const id = await aPool('deleted')
  const { registrationToken } = await c.call(ops.pools.createToken, { pool: id, reusable: true })
  const [entry] = await entriesBy(c, () => remove(id))
  assert.deepEqual(
    [entry?.action, entry?.target.name, entry?.before?.['registrationTokens']],
    ['pools.delete', 'deleted', 1],
  )
  const { runnerPools } = await c.call(ops.pools.list, { org: c.org, limit: 100 })
  assert.ok(!runnerPools.some((pool) => pool.id === id))
  const { x } = await keyPair()
  const join = callOp({ url: c.url }, ops.runnerSurface.register, registration(registrationToken.token, x))
  await assert.rejects(join, refusal('UNAUTHENTICATED', 'token'))
  const { get, delete: del, createToken, demand } = ops.pools
  for (const row of [get, del, createToken] as unknown as [typeof get])
    await assert.rejects(c.call(row, { pool: id }), refusal('NOT_FOUND'))
  for (const pool of [id, 'deleted']) await assert.rejects(c.call(demand, { org: c.org, pool }), refusal('NOT_FOUND'))
  await assert.rejects(update(id, { slots: 1 }), refusal('NOT_FOUND'))
})

test('a pool that is used is not deleted, and it is said by what', async () => {
  const id = await aPool('used')
  const workflow = await aWorkflow(c, { slug: 'user', descriptor: { pool: 'used' } })
  const run = await aRun(c, { workflow: 'user' })
  const agent = await anAgent(c, { pool: id })
  const inUse = async () => {
    const error = await remove(id).then(
      () => undefined,
      (error: Error & { detail?: Record<string, unknown> }) => error,
    )
    refusal('POOL_IN_USE')(error!)
    const { pool: _, ...detail } = error!.detail!
    return { message: error!.message, detail }
  }
  const { message, detail } = await inUse()
  assert.deepEqual(detail, { runners: 1, unfinishedRuns: 1, workflows: ['user'] })
  assert.match(message, /is in use: 1 runner .*; 1 unfinished run .*; current versions of workflows name it: `user`\./)
  await c.call(ops.runners.deregister, { runner: agent.id })
  assert.equal((await inUse()).detail['runners'], 0)
  // Behind the mark unfinished runs stand in a table of their own.
  await moveMark(c.db, run.id)
  assert.equal((await inUse()).detail['unfinishedRuns'], 1)
  // As a coordinator of before wrote it.
  await c.db`update runs_remaining set pool_id = null where run_id = ${run.id}`
  assert.equal((await inUse()).detail['unfinishedRuns'], 1)
  await c.call(ops.runs.cancel, { run: run.id })
  assert.equal((await inUse()).detail['unfinishedRuns'], 0)
  await aVersion(c, workflow, { descriptor: { pool: 'default' } })
  await remove(id)
  assert.equal((await runOf(c, run.id)).pool.name, 'used', 'its runs still show it')
  await assert.rejects(
    c.call(ops.runs.trigger, { org: c.org, workflow: 'user', version: 1 }),
    refusal('VALIDATION_FAILED'),
  )
})

test('a pool of a deleted name is a new one, without the settings and tokens of the other', async () => {
  const id = await aPool('phoenix', { slots: 9 })
  await remove(id)
  await aPool('phoenix', { labels: ['new'] })
  await assert.rejects(aPool('phoenix'), refusal('CONFLICT', 'name'))
  const { runnerPools } = await c.call(ops.pools.list, { org: c.org, limit: 100 })
  const [found, ...more] = runnerPools.filter((pool) => pool.name === 'phoenix')
  assert.deepEqual(more, [])
  assert.deepEqual(found?.settings, { ...DEFAULTS, labels: ['new'] })
})

test('of registrations and a deletion at once no runner is left in a pool that is gone', async () => {
  for (let round = 0; round < 10; round++) {
    const id = await aPool(`raced-${round}`)
    const { registrationToken } = await c.call(ops.pools.createToken, { pool: id })
    const { x } = await keyPair()
    const join = callOp({ url: c.url }, ops.runnerSurface.register, registration(registrationToken.token, x))
    const [joined, gone] = await Promise.allSettled([join, remove(id)])
    assert.notEqual(joined.status, gone.status, `round ${round}: both ${joined.status}`)
  }
})

test("another org's pool is not there, and members change none", async () => {
  const id = await aPool('ours')
  const { apiKey: stranger } = await anOrg(c)
  const member = await aKey(c.db, { orgId: c.orgId, role: 'member' })
  const { get, delete: del } = ops.pools
  for (const pool of [id, newId('pool')])
    for (const row of [get, del] as unknown as [typeof get])
      await assert.rejects(c.call(row, { pool }, { apiKey: stranger }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.pools.update, { pool: id, settings: {} }, { apiKey: stranger }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(del, { pool: id }, { apiKey: member }), refusal('FORBIDDEN'))
  await c.call(get, { pool: id }, { apiKey: member })
})
