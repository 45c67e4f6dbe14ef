import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { PROTOCOL } from '@windlass/shared/wire/agent.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let gpu: string
let here: TestAgent
let there: TestAgent
let connected: TestAgent

before(async () => {
  c = await aCoordinator()
  gpu = (await c.call(ops.pools.create, { org: c.org, name: 'gpu' })).runnerPool.id
  here = await anAgent(c, { name: 'here' })
  there = await anAgent(c, { name: 'there', pool: gpu })
  connected = await anAgent(c, { name: 'connected' })
  await connected.connect()
})
after(async () => {
  connected.close()
  await c.stop()
})

type Query = Omit<ArgsOf<typeof ops.runners.list>, 'org'>
const namesOf = async (query: Query = {}) =>
  (await c.call(ops.runners.list, { org: c.org, ...query })).runners.map((runner) => runner.name)

test('pools count their runners and what waits in them', async () => {
  await aWorkflow(c, { slug: 'waiting', descriptor: { pool: 'gpu' } })
  await aRun(c, { workflow: 'waiting' })
  const { runnerPools, nextCursor } = await c.call(ops.pools.list, { org: c.org })
  assert.deepEqual(
    runnerPools.map(({ name, runners, queuedRuns, org }) => ({ name, runners, queuedRuns, org })),
    [
      { name: 'default', runners: 2, queuedRuns: 0, org: c.org },
      { name: 'gpu', runners: 1, queuedRuns: 1, org: c.org },
    ],
  )
  assert.equal(nextCursor, null)
})

test('a pool is made once, whoever asks how often', async () => {
  const made = await Promise.allSettled(
    Array.from({ length: 10 }, () => c.call(ops.pools.create, { org: c.org, name: 'once' })),
  )
  assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of made) if (one.status === 'rejected') refusal('CONFLICT', 'name')(one.reason as Error)
  await assert.rejects(c.call(ops.pools.create, { org: c.org, name: 'No Slug' }), refusal('VALIDATION_FAILED', 'name'))
})

test('pools come in pages', async () => {
  const { runnerPools: all } = await c.call(ops.pools.list, { org: c.org })
  const first = await c.call(ops.pools.list, { org: c.org, limit: 1 })
  const second = await c.call(ops.pools.list, { org: c.org, limit: 100, cursor: first.nextCursor! })
  assert.deepEqual([...first.runnerPools, ...second.runnerPools], all)
  await assert.rejects(c.call(ops.pools.list, { org: c.org, cursor: 'x' }), refusal('VALIDATION_FAILED', 'cursor'))
})

test('runners are found by pool, by name or id of it, and by whether they are heard of', async () => {
  assert.deepEqual(await namesOf(), ['here', 'there', 'connected'])
  assert.deepEqual(await namesOf({ pool: 'gpu' }), ['there'])
  assert.deepEqual(await namesOf({ pool: gpu }), ['there'])
  assert.deepEqual(await namesOf({ pool: 'nowhere' }), [])
  assert.deepEqual(await namesOf({ status: 'online' }), ['connected'])
  assert.deepEqual(await namesOf({ status: 'offline' }), ['here', 'there'])
  assert.deepEqual(await namesOf({ status: 'online', pool: 'gpu' }), [])
})

test('a runner that has not been heard of for a minute is offline', async () => {
  await c.db`update runners set last_heartbeat_at = now() - interval '61 seconds', last_poll_at = now() - interval '61 seconds' where id = ${here.id}`
  assert.equal((await c.call(ops.runners.get, { runner: here.id })).runner.status, 'offline')
  await c.db`update runners set last_poll_at = now() - interval '50 seconds' where id = ${here.id}`
  assert.equal((await c.call(ops.runners.get, { runner: here.id })).runner.status, 'online')
})

test('an agent that is older than the service is named, with the command that installs the right one', async () => {
  const upgradeOf = async (id: string) => {
    const { runners } = await c.call(ops.runners.list, { org: c.org })
    return runners.find((runner) => runner.id === id)?.upgrade
  }
  const command = `curl -fsSL ${c.url}/install.sh | sh -s -- --upgrade`
  const { version } = await c.call(ops.service.health, {})
  for (const [older, protocol, expected] of [
    ['0.0.9', PROTOCOL, /of version 0\.0\.9, this coordinator of/],
    [version, PROTOCOL - 1, new RegExp(`speaks protocol ${PROTOCOL - 1}, this coordinator ${PROTOCOL}`)],
    [version, PROTOCOL, null],
    ['99.0.0', PROTOCOL, null],
    ['nightly', PROTOCOL, null],
  ] as const) {
    await c.db`update runners set version = ${older}, protocol = ${protocol} where id = ${here.id}`
    const upgrade = await upgradeOf(here.id)
    assert.equal(upgrade?.command ?? null, expected && command, older)
    if (expected) assert.match(upgrade?.message ?? '', expected)
  }
  await c.db`update runners set protocol = ${PROTOCOL - 1} where id = ${here.id}`
  const behindProxy = await c.another({ BASE_URL: 'https://windlass.example.com' })
  const { runner } = await behindProxy.call(ops.runners.get, { runner: here.id })
  assert.match(runner.upgrade?.command ?? '', /^curl -fsSL https:\/\/windlass\.example\.com\/install\.sh /)
  await behindProxy.stop()
})

test('runners are found by whether they are given work', async () => {
  const names = async (intake: Query['intake']) => namesOf({ intake })
  await c.call(ops.runners.cordon, { runner: there.id })
  assert.deepEqual(await names('open'), ['here', 'connected'])
  assert.deepEqual([await names('cordoned'), await names('draining'), await names('drained')], [['there'], [], []])
  await c.call(ops.runners.drain, { runner: there.id })
  assert.deepEqual([await names('cordoned'), await names('draining'), await names('drained')], [[], [], ['there']])
  await c.call(ops.runners.resume, { runner: there.id })
  assert.deepEqual(await names('revoked'), [])
})

test('runners come in pages', async () => {
  const first = await c.call(ops.runners.list, { org: c.org, limit: 2 })
  assert.equal(first.runners.length, 2)
  assert.deepEqual(
    (await c.call(ops.runners.list, { org: c.org, limit: 2, cursor: first.nextCursor! })).runners.map(
      ({ name }) => name,
    ),
    ['connected'],
  )
  await assert.rejects(
    namesOf({ cursor: Buffer.from('pool_x').toString('base64url') }),
    refusal('VALIDATION_FAILED', 'cursor'),
  )
  assert.equal((await rawCall(c, 'GET', `/v1/orgs/${c.org}/runners?status=asleep`)).status, 400)
})

test("another org's pools and runners look absent", async () => {
  const strangers = await anOrg(c)
  const key = { apiKey: strangers.apiKey }
  assert.deepEqual((await c.call(ops.runners.list, { org: strangers.slug, pool: gpu }, key)).runners, [])
  assert.equal((await c.call(ops.pools.list, { org: strangers.slug }, key)).runnerPools.length, 1)
  await assert.rejects(c.call(ops.runners.get, { runner: there.id }, key), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.runners.get, { runner: newId('rnr') }), refusal('NOT_FOUND'))
  for (const row of [ops.runners.list, ops.pools.list] as const) {
    assert.equal((await rawCall({ url: c.url, ...key }, 'GET', row.path.replace('{org}', c.org))).status, 404)
  }
})

test('making pools and tokens is for admins', async () => {
  const { key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'member', role: 'member' })
  await assert.rejects(c.call(ops.pools.create, { org: c.org, name: 'mine' }, { apiKey: key }), refusal('FORBIDDEN'))
  await assert.rejects(c.call(ops.pools.createToken, { pool: gpu }, { apiKey: key }), refusal('FORBIDDEN'))
  assert.ok((await c.call(ops.pools.list, { org: c.org }, { apiKey: key })).runnerPools.length > 0)
})
