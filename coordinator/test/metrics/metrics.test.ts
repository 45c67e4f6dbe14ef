import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { networkInterfaces } from 'node:os'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { assertMayScrape } from '../../metrics/access.ts'
import { queueText } from '../../metrics/queue-text.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { turnsBeside } from '../_kit/turns.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

async function scrape(at: Pick<TestCoordinator, 'url'> = c): Promise<Map<string, number>> {
  const response = await fetch(`${at.url}/metrics`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

test('says how many runs there are by status, and how long the oldest of the queue has waited', async () => {
  for (let i = 0; i < 3; i++) await aRun(c, { workflow: 'any' })
  const fresh = await c.another()
  const found = await scrape(fresh)
  assert.equal(found.get('windlass_runs{status="queued",place="none"}'), 3)
  assert.equal(found.get('windlass_runs{status="running",place="none"}'), 0)
  assert.equal(found.get('windlass_queue_depth{org="default",pool="default"}'), 3)
  assert.ok(found.get('windlass_queue_oldest_seconds{org="default",pool="default"}')! > 0)
  await fresh.stop()
})

/** Pools of a new org with so many waiting runs each; those of the last have waited longest. */
async function poolsOf(org: string, pools: number, queued: number): Promise<void> {
  const orgId = newId('org')
  await c.db`insert into orgs (id, slug, name) values (${orgId}, ${org}, ${org})`
  const ids = Array.from({ length: pools }, () => newId('pool'))
  await c.db`
    insert into runner_pools (id, org_id, name, settings)
    select id, ${orgId}, 'p' || n, '{}' from unnest(${ids}::text[]) with ordinality _(id, n)`
  await c.db`
    insert into run_queue (run_id, pool_id, priority, entered_at)
    select ${org} || n || '_' || i, id, 0, now() - make_interval(hours => n::int)
    from unnest(${ids}::text[]) with ordinality _(id, n), generate_series(1, ${queued}::int) i`
}

test('tells nothing of pools that have neither a queue nor a runner, and sums up what is too much', async () => {
  await poolsOf('idle', 1500, 0)
  await poolsOf('small', 3, 1)
  await poolsOf('large', 1100, 2)
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: 'of-one' })
  const agent = await anAgent(c, { pool: runnerPool.id })
  const fresh = await c.another()
  const found = await scrape(fresh)
  await fresh.stop()
  agent.close()
  const depths = [...found.keys()].filter((name) => name.startsWith('windlass_queue_depth'))
  const ages = [...found.keys()].filter((name) => name.startsWith('windlass_queue_oldest_seconds'))
  assert.deepEqual([depths.length, ages.length], [1001, 1001])
  assert.ok(!depths.some((name) => name.includes('"idle"')))
  // Queues of others are longer and more, but each org has its longest.
  for (const pool of ['p1', 'p2', 'p3']) assert.equal(found.get(`windlass_queue_depth{org="small",pool="${pool}"}`), 1)
  assert.equal(found.get('windlass_queue_depth{org="default",pool="of-one"}'), 0)
  const rest = 1100 - depths.filter((name) => name.includes('"large"')).length
  assert.ok(rest > 100)
  assert.equal(found.get('windlass_queues_summed_up'), rest)
  assert.equal(found.get('windlass_queue_depth{org="_other",pool="_other"}'), 2 * rest)
  assert.ok(found.get('windlass_queue_oldest_seconds{org="_other",pool="_other"}')! >= 3600 * rest)
})

test('figures of many queues are written in many turns of the event loop', async (t) => {
  const listed = Array.from({ length: 100 }, (_, i) => ({ org: 'o', pool: `p${i}`, count: 1, oldestSeconds: 1 }))
  const rest = { pools: 0, count: 0, oldestSeconds: 0 }
  assert.ok((await turnsBeside(t, () => queueText({ listed, rest }))) >= 99)
})

test('counts what is committed, and the agents and polls that are here', async () => {
  const before = (await scrape()).get('windlass_commit_items_total{commit="triggers"}')!
  const agent = await anAgent(c)
  const link = await agent.connect()
  const [offer] = await agent.poll(1)
  assert.ok(offer)
  await link.accept(offer)
  await link.report(offer, 1, ['start', Date.now()], ['end', Date.now(), { how: 'returned', outputText: 'null' }, 1])
  await aRun(c, { workflow: 'any' })
  const found = await scrape()
  assert.equal(found.get('windlass_commit_items_total{commit="triggers"}'), before + 1)
  assert.equal(found.get('windlass_commit_items_total{commit="claims"}'), 1)
  assert.equal(found.get('windlass_commit_items_total{commit="acceptances"}'), 1)
  assert.equal(found.get('windlass_commit_items_total{commit="entries"}'), 2)
  assert.equal(found.get('windlass_commit_seconds_count{commit="entries"}'), 1)
  assert.equal(found.get('windlass_agents_connected'), 1)
  agent.close()
  await until('the agent has left', async () => (await scrape()).get('windlass_agents_connected') === 0)
})

test('says how late the timers are', async () => {
  await c.db`insert into timers (run_id, org_id, kind, due_at) values ('run_x', ${c.orgId}, 'wall-timeout', now() - interval '2 hours')`
  const fresh = await c.another()
  // A coordinator fires what is due: either it is still there and hours late, or it is gone.
  const found = await scrape(fresh)
  const overdue = found.get('windlass_timers_overdue')!
  assert.ok(overdue === 0 || found.get('windlass_timers_lag_seconds')! > 7000)
  await fresh.stop()
})

test('says since when somebody reads the database in one snapshot', async () => {
  await c.db.begin('isolation level repeatable read read only', async (tx) => {
    await tx`select count(*) from orgs`
    await tx`select pg_sleep(0.2)`
    const fresh = await c.another()
    const found = await scrape(fresh)
    assert.ok(found.get('windlass_oldest_snapshot_seconds')! >= 0.2)
    await fresh.stop()
  })
})

test('every kind of orphan is there from the start, at zero, and the process tells of itself', async () => {
  const found = await scrape()
  assert.equal(found.get('windlass_orphans_total{kind="queued_nowhere"}'), 0)
  assert.equal(found.get('windlass_orphans_repaired_total'), 0)
  assert.ok(found.get('process_resident_memory_bytes')! > 0)
})

const alone = {
  host: '127.0.0.1',
  metricsToken: undefined,
  baseUrl: undefined,
  trustedProxies: [],
  mcpHosts: [],
  mcpOrigins: [],
}
const asLocalhost = (name: string) => (name === 'host' ? 'localhost:8787' : undefined)
const withToken = { ...alone, metricsToken: 'a-token-of-mine' }

test('where others are served, what connects from this machine may be a forwarder that does not say so', () => {
  const here = { address: '127.0.0.1', header: asLocalhost }
  for (const shared of [{ host: '0.0.0.0' }, { baseUrl: 'https://a.example.com' }, { trustedProxies: ['127.0.0.1'] }])
    assert.throws(() => assertMayScrape(here, { ...alone, ...shared }), /Set WINDLASS_METRICS_TOKEN/)
  const token = { address: '127.0.0.1', header: () => 'Bearer a-token-of-mine' }
  assertMayScrape(token, { ...withToken, host: '0.0.0.0' })
})

test('is for this machine only, unless a token is set and sent', async () => {
  const outside = { address: '192.0.2.7', header: () => undefined }
  const carries = (authorization: string) => ({ address: '192.0.2.7', header: () => authorization })
  assert.throws(() => assertMayScrape(outside, alone), /Set WINDLASS_METRICS_TOKEN/)
  assert.throws(() => assertMayScrape(carries('Bearer guess'), alone), refusal('FORBIDDEN'))
  assert.throws(() => assertMayScrape(outside, withToken), /Send the value of WINDLASS_METRICS_TOKEN/)
  assert.throws(() => assertMayScrape(carries('Bearer guess'), withToken), refusal('FORBIDDEN'))
  assertMayScrape(carries('Bearer a-token-of-mine'), withToken)
  for (const address of [
    '127.0.0.1',
    '127.3.2.1',
    '::1',
    '0000:0000:0000:0000:0000:0000:0000:0001',
    '::ffff:127.0.0.1',
  ])
    assertMayScrape({ address, header: asLocalhost }, alone)
})

test('whoever comes through a proxy on this machine is not this machine', async () => {
  const response = await fetch(`${c.url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.9' } })
  assert.equal(response.status, 403)
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  assert.equal(error.code, 'FORBIDDEN')
  assert.match(error.message, /WINDLASS_METRICS_TOKEN/)
})

test('the address is that of the connection, so another interface of this machine is refused without the token', async (t) => {
  const outer = Object.values(networkInterfaces())
    .flat()
    .find((one) => one && !one.internal && one.family === 'IPv4')
  if (!outer) return t.skip('this machine has no other interface')
  const open = await c.another({ HOST: '0.0.0.0', METRICS_TOKEN: 'a-token-of-this-test' })
  const url = `${open.url.replace('127.0.0.1', outer.address)}/metrics`
  assert.equal((await fetch(url)).status, 403)
  const headers = { authorization: 'Bearer a-token-of-this-test' }
  assert.equal((await fetch(url, { headers })).status, 200)
  await open.stop()
})

test('the row is public, and no command of the CLI', () => {
  assert.deepEqual(ops.service.metrics.credentials, [])
  assert.equal(ops.service.metrics.wire, 'bytes')
})

test('a page whose name was made to point here is not this machine', async () => {
  const port = new URL(c.url).port
  const statusAs = async (host: string) => {
    const asked = get({ host: '127.0.0.1', port, path: '/metrics', headers: { host } })
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    answer.resume()
    return answer.statusCode
  }
  assert.equal(await statusAs(`evil.example.com:${port}`), 403)
  assert.equal(await statusAs('127.0.0.1.evil.example.com'), 403)
  for (const ours of [`localhost:${port}`, `127.0.0.1:${port}`, '[::1]']) assert.equal(await statusAs(ours), 200, ours)
})
