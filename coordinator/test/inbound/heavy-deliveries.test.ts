// What one delivery, or what is wanted of it, may cost everybody else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { weightOfDelivery } from '../../groups.ts'
import type { NewDelivery } from '../../inbound/commit.ts'
import { noCredential } from '../../stay.ts'
import { aConnection as connectionOf, aReceiverOf, type MadeConnection, push } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { pagesOf } from '../_kit/pages.ts'
import { until } from '../_kit/until.ts'

/** After a wait of more than a second it is looked at again. */
const LONG_AGO_MS = 1100

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 1 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

const aConnection = () => connectionOf(c, session, { kind: 'github' })
const deliveryOf = async (id: string) => (await c.call(ops.deliveries.get, { delivery: id })).delivery
const tried = async ({ id }: MadeConnection) =>
  (await c.call(ops.connections.test, { connection: id, event: 'push', payload: {} })).test

/** Of every workflow that names the connection. */
const setFilters = ({ name }: MadeConnection, bytes: number) => c.db`
  update workflow_connections
  set filter = json_build_object('ref', repeat('x', ${bytes}::int))
  where connection = ${name}`

/** So many more workflows that want pushes of the connection. */
async function copyReceiver({ name }: MadeConnection, { id }: { id: string }, count: number): Promise<void> {
  await c.db`
    insert into workflows
    select (jsonb_populate_record(w, jsonb_build_object('id', left(w.id, 23) || nth, 'slug', w.slug || nth))).*
    from workflows w, generate_series(1, ${count}::int) n, to_char(n, 'FM000000') nth
    where w.id = ${id}`
  await c.db`
    insert into workflow_connections (workflow_id, n, org_id, connection, events, filter)
    select w.id, 0, w.org_id, ${name}, '{push}', '{}'
    from workflows w
    where w.org_id = ${c.orgId} and left(w.id, 23) = left(${id}, 23) and w.id <> ${id}`
}

test('of a connection more than 1 MiB of filters is not read: its deliveries are kept, and say so', async () => {
  const github = await aConnection()
  const { slug } = await aReceiverOf(c, github.name, ['push'])
  await setFilters(github, 1024 * 1024)
  const { receipt } = await push(github, '{"ref":"x"}')
  const [match] = (await deliveryOf(receipt.delivery.id)).matches
  assert.deepEqual([match!.workflow.slug, match!.outcome], [slug, 'too_large'])
  assert.match(match!.reason!, /Shorten `filter`/)
  const { outcome, matches } = await tried(github)
  assert.deepEqual([outcome, matches], ['too_large', [{ workflow: slug, outcome: 'too_large', reason: match!.reason }]])
  await setFilters(github, 1)
  assert.equal((await push(github, '{"ref":"x"}')).receipt.delivery.outcome, 'triggered')
})

test('a connection that more than a thousand workflows name starts none of them, and says so', async () => {
  const github = await aConnection()
  await copyReceiver(github, await aReceiverOf(c, github.name, ['push']), 1000)
  const { receipt } = await push(github, '{}')
  assert.deepEqual([receipt.delivery.outcome, receipt.runs], ['too_large', []])
  assert.match(receipt.delivery.reason!, /More than 1000 workflows/)
  assert.equal((await deliveryOf(receipt.delivery.id)).matches.length, 1000)
})

test('large deliveries take turns with others of their org; small ones do not wait for them', async (t) => {
  const github = await aConnection()
  await aReceiverOf(c, github.name, ['push'])
  const turns = c.deps.turns.orgDeliveries
  const held = Promise.withResolvers<void>()
  const seated = [1, 2].map(() => turns.run(c.orgId, noCredential, () => held.promise))
  const run = t.mock.method(turns, 'run')
  const large = push(github, JSON.stringify({ text: 'x'.repeat(65_536) }))
  await until('the large one to wait', () => run.mock.callCount() === 1)
  assert.equal((await push(github, '{}')).receipt.delivery.outcome, 'triggered')
  held.resolve()
  await Promise.all(seated)
  assert.equal((await large).receipt.delivery.outcome, 'triggered')
})

test('a small delivery that may start many workflows takes a turn too, and counts as many in a commit', async (t) => {
  const github = await aConnection()
  for (let i = 0; i < 7; i++) await aReceiverOf(c, github.name, ['push'])
  const run = t.mock.method(c.deps.turns.orgDeliveries, 'run')
  const pushed = (bytes: number) => push(github, JSON.stringify({ text: 'x'.repeat(bytes) }))
  assert.equal((await pushed(8 * 1024)).receipt.runs.length, 7)
  assert.equal(run.mock.callCount(), 0)
  assert.equal((await pushed(10 * 1024)).receipt.runs.length, 7)
  assert.equal(run.mock.callCount(), 1)
  const start = { run: { input: 'x'.repeat(32 * 1024) }, keys: [] } as unknown as NewDelivery['starts'][number]
  const weights = [0, 1, 100].map((n) =>
    weightOfDelivery({ payload: null, decided: [], starts: Array.from({ length: n }, () => start) }),
  )
  assert.deepEqual(weights, [1, 2, 200])
})

test('a delivery of two bytes takes a turn where many workflows name its connection, and counts more', async (t) => {
  const github = await aConnection()
  await copyReceiver(github, await aReceiverOf(c, github.name, ['push']), 60)
  const run = t.mock.method(c.deps.turns.orgDeliveries, 'run')
  const deliveries = t.mock.method(c.deps.deliveries, 'add')
  const pushed = async () => (await push(github, '{}', { 'x-github-event': 'ping' })).receipt.delivery
  assert.equal((await pushed()).outcome, 'unmatched')
  assert.equal(run.mock.callCount(), 0)
  await copyReceiver(github, await aReceiverOf(c, github.name, ['push']), 10)
  const { id, outcome } = await pushed()
  assert.deepEqual([outcome, run.mock.callCount()], ['unmatched', 1])
  assert.equal((await deliveryOf(id)).matches.length, 72)
  const weights = deliveries.mock.calls.map(({ arguments: [item] }) => weightOfDelivery(item))
  assert.deepEqual(weights.map(Math.floor), [8, 10])
})

test('a small delivery with which filters compare much takes a turn, and goes on by pieces', async (t) => {
  const github = await aConnection()
  const names = Array.from({ length: 9 }, (_, n) => `a${n}`)
  const filterOf = (count: number) =>
    Object.fromEntries(names.map((name) => [`${name}[]`, { not: Array<string>(count).fill('q*') }]))
  const { slug } = await aReceiverOf(c, github.name, ['push'], { filter: filterOf(80) })
  const run = t.mock.method(c.deps.turns.orgDeliveries, 'run')
  const pieces: string[] = []
  const stop = onMoment(({ name, facts }) => name === 'pace.passed' && pieces.push(facts.org))
  const texts = (count: number) => Object.fromEntries(names.map((name) => [name, Array<string>(count).fill('')]))
  const pushed = (count: number) => push(github, JSON.stringify(texts(count)))
  assert.equal((await pushed(1)).receipt.delivery.outcome, 'triggered')
  assert.deepEqual([run.mock.callCount(), pieces.length], [0, 0])
  assert.equal((await pushed(990)).receipt.delivery.outcome, 'triggered')
  assert.equal(run.mock.callCount(), 1)
  assert.ok(pieces.length >= 70 && pieces.every((org) => org === c.orgId), `${pieces.length} pieces`)
  // Asked what it would start, it does so in the turn of the request.
  const before = pieces.length
  const ask = { connection: github.id, event: 'push', payload: texts(990) }
  assert.equal((await c.call(ops.connections.test, ask)).test.matches[0]!.workflow, slug)
  assert.equal(run.mock.callCount(), 1)
  assert.ok(pieces.length >= before + 70)
  stop()
})

test('what turns out to be unverified after a wait for its turn is not kept as if it were', async (t) => {
  const github = await aConnection()
  await aReceiverOf(c, github.name, ['push'])
  assert.equal((await push({ ...github, secret: 'another' }, '{}')).status, 401)
  const turns = c.deps.turns.orgDeliveries
  const held = Promise.withResolvers<void>()
  const seated = [1, 2].map(() => turns.run(c.orgId, noCredential, () => held.promise))
  const run = t.mock.method(turns, 'run')
  const large = push(github, JSON.stringify({ text: 'x'.repeat(65_536) }))
  await until('it waits', () => run.mock.callCount() === 1)
  const secret = 'b'.repeat(32)
  await c.call(ops.connections.setSecret, { connection: github.id, secret, overlapMs: 0 }, { apiKey: session })
  await pause(LONG_AGO_MS)
  held.resolve()
  await Promise.all(seated)
  assert.equal((await large).status, 429)
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, connection: github.name })
  assert.deepEqual(
    deliveries.map(({ outcome }) => outcome),
    ['unverified'],
  )
})

test('a page of deliveries with many matches has fewer of them, and leads on to the others', async () => {
  const github = await aConnection()
  const { id } = await aReceiverOf(c, github.name, ['pull_request'])
  for (let n = 0; n < 5; n++) await push(github, '{}')
  await c.db`update delivery_matches set reason = repeat('x', 400000) where workflow_id = ${id}`
  const connection = github.id
  const lists = [
    (page: object) => c.call(ops.deliveries.list, { org: c.org, connection: github.name, limit: 100, ...page }),
    (page: object) => c.call(ops.deliveries.list, { org: c.org, workflow: id, limit: 100, ...page }),
    (page: object) => c.call(ops.connections.deliveries, { connection, limit: 100, ...page }),
  ]
  for (const list of lists) {
    const pages = await pagesOf(list, ({ deliveries }) => deliveries.map((one) => `${one.id} ${one.matches.length}`))
    assert.deepEqual(
      pages.map((page) => page.length),
      [2, 2, 1],
    )
    assert.equal(new Set(pages.flat().filter((one) => one.endsWith(' 1'))).size, 5)
  }
})
