// Deliveries that are verified and wait for others of their org, and what they leave to everybody else.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { noCredential } from '../../stay.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aConnection, aReceiverOf, push } from '../_kit/connections.ts'
import { anOrg, aCoordinatorOfItsOwn, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook } from '../_kit/inbound.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MIB = 1024 * 1024
/** What all have in memory, of bodies that are not small. */
const ALL_BYTES = 192 * MIB
/** Takes a turn of its org; three of them are nearly all that it may have. */
const LARGE_BYTES = 1_000_000
const WAITED = /waited for others of its org while others needed the room; send it again/

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), TRUSTED_PROXIES: '127.0.0.1', MAX_DELIVERY: MIB })
})
after(() => c.stop())

interface OfOrg {
  orgId: string
  hook: Hook
}

async function aHookOfItsOwn(descriptor: object = {}): Promise<OfOrg & { workflow: string }> {
  const org = asOwner(c, await anOrg(c))
  const { id, slug } = await aWorkflow(org, { descriptor: { webhook: {}, ...descriptor } })
  const session = await aSession(c.db, { orgId: org.orgId })
  return { orgId: org.orgId, hook: await aHook(org, session, slug), workflow: id }
}

let sent = 0
const post = ({ hook }: OfOrg, bytes: number, address: string) =>
  deliver(hook, { body: `{"n":${++sent},"text":"${'x'.repeat(bytes)}"}`, headers: { 'x-forwarded-for': address } })

/** Keeps the turns of the org, so that its large deliveries wait. */
function keepTurns({ orgId }: OfOrg, t: TestContext): () => Promise<unknown> {
  const turns = c.deps.turns.orgDeliveries
  const held = Promise.withResolvers<void>()
  const seated = [1, 2].map(() => turns.run(orgId, noCredential, () => held.promise))
  const give = () => {
    held.resolve()
    return Promise.all(seated)
  }
  t.after(give)
  return give
}

/** So many large deliveries of the org, each from an address of its own, that wait for a turn. */
async function waitingOf(org: OfOrg, count: number, t: TestContext) {
  const run = t.mock.method(c.deps.turns.orgDeliveries, 'run')
  const posts = Array.from({ length: count }, (_, n) => post(org, LARGE_BYTES, `203.0.113.${n + 1}`))
  await until('all to wait', () => run.mock.callCount() === count)
  run.mock.restore()
  return posts
}

test('an org has as much waiting as one address may send, from however many it comes', async (t) => {
  const [ours, other] = await Promise.all([aHookOfItsOwn(), aHookOfItsOwn()])
  const giveTurns = keepTurns(ours, t)
  const waiting = await waitingOf(ours, 3, t)
  const refused = await post(ours, LARGE_BYTES, '203.0.113.9')
  assert.deepEqual(
    [refused.status, refused.error.detail?.['scope'], refused.error.detail?.['limitBytes']],
    [429, 'org', 3 * MIB],
  )
  assert.match(refused.error.message, /^Deliveries of this org may have 3145728 bytes under way together/)
  assert.equal(refused.headers.get('retry-after'), '5')
  assert.equal((await post(ours, 60_000, '203.0.113.9')).status, 200, 'what is small has room')
  for (const address of ['203.0.113.1', '203.0.113.9'])
    assert.equal((await post(other, LARGE_BYTES, address)).status, 200)
  await giveTurns()
  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 200)
  assert.equal((await post(ours, LARGE_BYTES, '203.0.113.9')).status, 200)
})

test('what waits for others of its org gives way when others have no room', async (t) => {
  const [ours, other] = await Promise.all([aHookOfItsOwn(), aHookOfItsOwn()])
  const giveTurns = keepTurns(ours, t)
  const waiting = await waitingOf(ours, 3, t)
  fill(t, ALL_BYTES - 3 * LARGE_BYTES - 1000)
  assert.equal((await post(other, 400_000, '198.51.100.7')).status, 200)
  const { status, error, headers } = await Promise.race(waiting)
  assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
  assert.match(error.message, WAITED)
  await giveTurns()
  const statuses = (await Promise.all(waiting)).map((answer) => String(answer.status))
  assert.deepEqual(statuses.toSorted(), ['200', '200', '503'])
})

test('what waits for the look at what is wanted of it gives way too', async (t) => {
  const other = await aHookOfItsOwn()
  const org = asOwner(c, await anOrg(c))
  const github = await aConnection(org, await aSession(c.db, { orgId: org.orgId }), { kind: 'github' })
  await aReceiverOf(org, github.name, ['push'])
  const held = Promise.withResolvers<{ workflows: number; weight: number }>()
  const look = t.mock.method(c.deps.wantings, 'add', () => held.promise)
  const body = JSON.stringify('x'.repeat(LARGE_BYTES))
  const waiting = [1, 2, 3].map((n) => push(github, body, { 'x-forwarded-for': `203.0.113.${n}` }))
  await until('all to wait', () => look.mock.callCount() === waiting.length)
  fill(t, ALL_BYTES - waiting.length * LARGE_BYTES - 1000)
  assert.equal((await post(other, 400_000, '198.51.100.7')).status, 200)
  const gone = await Promise.race(waiting)
  assert.deepEqual([gone.status, WAITED.test(gone.error.message)], [503, true])
  held.resolve({ workflows: 1, weight: 0 })
  const statuses = (await Promise.all(waiting)).map(({ status }) => String(status))
  assert.deepEqual(statuses.toSorted(), ['200', '200', '503'])
})

test('small ones that wait for a lock of their org give way until their commit begins', async (t) => {
  const [ours, other] = await Promise.all([aHookOfItsOwn({ concurrency: 1 }), aHookOfItsOwn()])
  const add = t.mock.method(c.deps.deliveries, 'add')
  const waiting: ReturnType<typeof post>[] = []
  await c.db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended(${ours.workflow}, 0))`
    waiting.push(post(ours, 60_000, '203.0.113.1'))
    await untilBlocked(c.db)
    for (let n = 2; n <= 9; n++) waiting.push(post(ours, 60_000, `203.0.113.${n}`))
    await until('all to wait', () => add.mock.callCount() === waiting.length)
    fill(t, ALL_BYTES - waiting.length * 60_000 - 1000)
    assert.equal((await post(other, 200_000, '198.51.100.7')).status, 200)
  })
  const answers = await Promise.all(waiting)
  assert.equal(answers[0]!.status, 200, 'its commit had begun')
  const gone = answers.filter(({ status }) => status === 503)
  assert.deepEqual([gone.length, gone.every(({ error }) => WAITED.test(error.message))], [4, true])
  const [row] = await c.db<[{ count: number }]>`
    select count(*)::int as count from deliveries where org_id = ${ours.orgId}`
  assert.equal(row.count, waiting.length - gone.length, 'what was committed was answered so, and nothing else is there')
})

test('a small delivery has room though large ones have filled theirs', async (t) => {
  const other = await aHookOfItsOwn()
  fill(t, ALL_BYTES)
  assert.equal((await post(other, 60_000, '198.51.100.7')).status, 200)
  assert.equal((await post(other, 70_000, '198.51.100.7')).status, 503)
})

test('what has been answered Slack in time, and goes on, still counts', async (t) => {
  const ours = await aHookOfItsOwn()
  const giveTurns = keepTurns(ours, t)
  const run = t.mock.method(c.deps.turns.orgDeliveries, 'run')
  const headers = { 'x-slack-signature': 'v0=0', 'x-forwarded-for': '198.51.100.7' }
  const late = await deliver(ours.hook, { body: JSON.stringify('x'.repeat(LARGE_BYTES)), headers })
  assert.deepEqual([late.status, run.mock.callCount()], [503, 1])
  assert.match(late.error.message, /This took too long/)
  const isFree = () => {
    const holding = c.deps.deliveryBodies.hold('elsewhere', () => {})
    try {
      holding.countFor(ours.orgId)
      // All that an org may have.
      holding.take(3 * MIB)
      return true
    } catch {
      return false
    } finally {
      holding.release()
    }
  }
  assert.equal(isFree(), false)
  await giveTurns()
  await until('it to be over', isFree)
})

/** By bodies that give way to nobody, from many addresses. */
function fill(t: TestContext, bytes: number): void {
  for (let left = bytes, n = 0; left > 0; left -= 2 * MIB, n++) {
    const holding = c.deps.deliveryBodies.hold(`address ${n}`, () => assert.fail('it does not give way'))
    holding.take(Math.min(left, 2 * MIB))
    holding.whole()
    t.after(holding.release)
  }
}
