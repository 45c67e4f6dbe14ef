// Deliveries to one webhook or connection at the same moment: what they cost is bounded.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { aConnection, aReceiverOf, push } from '../_kit/connections.ts'
import { aSession } from '../_kit/credentials.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

async function aReceiver(): Promise<Hook & { slug: string }> {
  const { slug } = await aWorkflow(c)
  return { ...(await aHook(c, session, slug)), slug }
}

const unsigned = (hook: Hook) => deliver(hook, { signature: null })
const statusesOf = async (all: ReturnType<typeof deliver>[]) =>
  new Set((await Promise.all(all)).map(({ status }) => status))

/** More than a coordinator has connections. */
const MANY = 40

/** Looks for webhooks wait until `act` has ended. */
async function whileLooksWait(act: () => Promise<void>): Promise<void> {
  await c.db.begin(async (tx) => {
    await tx`lock table webhooks in access exclusive mode`
    await act()
  })
}

test('while look-ups of one webhook take long, others have connections, and no delivery is lost', async () => {
  const hook = await aReceiver()
  const all: ReturnType<typeof deliver>[] = []
  const signed: ReturnType<typeof deliver>[] = []
  await whileLooksWait(async () => {
    for (let n = 0; n < MANY; n++) all.push(unsigned(hook))
    await untilBlocked(c.db, '%webhooks h%')
    for (let n = 0; n < 3; n++) signed.push(deliver(hook, { body: JSON.stringify({ n }) }))
    await c.call(ops.account.get, {})
    await c.call(ops.pools.list, { org: c.org })
    assert.ok((await countBlocked(c.db, '%webhooks h%')) <= 2)
  })
  assert.deepEqual(await statusesOf(all), new Set([401]))
  for (const { status, receipt } of await Promise.all(signed))
    assert.deepEqual([status, receipt.delivery.outcome], [200, 'triggered'])
})

test('deliveries of one connection share the look at what is wanted of it, and others have connections', async () => {
  const github = await aConnection(c, session, { kind: 'github' })
  await aReceiverOf(c, github.name, ['push'])
  const all: ReturnType<typeof push>[] = []
  const hook = await aReceiver()
  await c.db.begin(async (tx) => {
    await tx`lock table workflow_connections in access exclusive mode`
    for (let n = 0; n < MANY; n++) all.push(push(github, '{}'))
    await untilBlocked(c.db, '%workflow_connections%')
    // What is wanted of a webhook is known.
    assert.equal((await deliver(hook)).status, 200)
    assert.ok((await countBlocked(c.db, '%workflow_connections%')) <= 2)
  })
  for (const { receipt } of await Promise.all(all)) assert.equal(receipt.delivery.outcome, 'triggered')
  // A workflow that is deployed later counts for what comes in then.
  const { slug } = await aReceiverOf(c, github.name, ['push'])
  const { receipt } = await push(github, '{}')
  assert.deepEqual([receipt.runs.length, receipt.runs.some(({ workflow }) => workflow === slug)], [2, true])
})

test('amid a flood of unsigned ones a new secret counts at once, and so does the end of the webhook', async (t) => {
  const hook = await aReceiver()
  const flood = { isOver: false }
  t.after(() => (flood.isOver = true))
  const seen = new Set<number>()
  const senders = Array.from({ length: 10 }, async () => {
    while (!flood.isOver) seen.add((await unsigned(hook)).status)
  })
  assert.equal((await deliver(hook)).status, 200)
  const asked = { org: c.org, workflow: hook.slug }
  const { secret } = await c.call(ops.webhooks.rotate, { ...asked, overlapMs: 0 }, { apiKey: session })
  assert.equal((await deliver({ ...hook, secret }, { body: '{"n":1}' })).status, 200)
  assert.ok([401, 429].includes((await deliver(hook, { body: '{"n":2}' })).status))
  await c.call(ops.workflows.delete, asked)
  assert.equal((await deliver({ ...hook, secret }, { body: '{"n":3}' })).status, 404)
  flood.isOver = true
  await Promise.all(senders)
  assert.ok(seen.has(401) && [...seen].every((status) => [401, 404, 429].includes(status)), [...seen].join())
})
