// A sender that was refused tries again by itself, also after somebody has replayed what it sent.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aConnection, aReceiverOf, nextNumber } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, send, signature } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 0 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

const replay = async (delivery: string, unverified = false) =>
  (await c.call(ops.deliveries.replay, { delivery, unverified }, { apiKey: session })).delivery

const SHOWN = 'whsec_that-stripe-has-shown'

/** A connection with a secret that was typed wrong, and an event of Stripe, signed anew each time that it is sent. */
async function aRefusedEvent() {
  const connection = await aConnection(c, session, { kind: 'stripe' })
  await aReceiverOf(c, connection.name, ['invoice.*'])
  const body = JSON.stringify({ id: `evt_${nextNumber()}`, type: 'invoice.paid' })
  let at = Math.floor(Date.now() / 1000)
  const post = () => {
    const t = ++at
    const v1 = createHmac('sha256', SHOWN).update(`${t}.${body}`).digest('hex')
    const headers = { 'content-type': 'application/json', 'stripe-signature': `t=${t},v1=${v1}` }
    return send(connection.url, { body, headers })
  }
  assert.equal((await post()).status, 401)
  const { deliveries } = await c.call(ops.deliveries.list, { org: c.org, connection: connection.id })
  const setSecret = () =>
    c.call(ops.connections.setSecret, { connection: connection.id, secret: SHOWN, overlapMs: 0 }, { apiKey: session })
  return { post, setSecret, refused: deliveries[0]!.id }
}

test('what a refused sender sends again is a repetition of the replay', async () => {
  const { post, setSecret, refused } = await aRefusedEvent()
  await setSecret()
  const { outcome, matches } = await replay(refused)
  const run = matches[0]!.runId
  assert.deepEqual([outcome, matches[0]!.reason], ['triggered', null])
  for (let n = 0; n < 2; n++) {
    const { status, receipt } = await post()
    assert.deepEqual([status, receipt.delivery.outcome, receipt.runs.map(({ id }) => id)], [200, 'duplicate', [run]])
  }
})

test('a replay after it was sent again starts a run of its own, and names the other', async () => {
  const { post, setSecret, refused } = await aRefusedEvent()
  await setSecret()
  const { receipt } = await post()
  const first = receipt.runs[0]!.id
  const { outcome, matches } = await replay(refused)
  assert.equal(outcome, 'triggered')
  assert.notEqual(matches[0]!.runId, first)
  assert.match(matches[0]!.reason ?? '', new RegExp(`started the run ${first} before`))
  assert.deepEqual(
    (await post()).receipt.runs.map(({ id }) => id),
    [first],
    'the first one holds the keys',
  )
})

test('many replays and retries at once: each replay has a run, and no retry', async () => {
  const { post, setSecret, refused } = await aRefusedEvent()
  await setSecret()
  await replay(refused)
  const [replays, retries] = await Promise.all([
    Promise.all(Array.from({ length: 5 }, () => replay(refused))),
    Promise.all(Array.from({ length: 5 }, post)),
  ])
  assert.equal(new Set(replays.map(({ matches }) => matches[0]!.runId)).size, 5)
  assert.deepEqual(new Set(retries.map(({ receipt }) => receipt.delivery.outcome)), new Set(['duplicate']))
})

test('one that does not verify, and is replayed all the same, makes no repetition of what comes', async () => {
  const { post, setSecret, refused } = await aRefusedEvent()
  assert.equal((await replay(refused, true)).outcome, 'triggered')
  await setSecret()
  assert.equal((await post()).receipt.delivery.outcome, 'triggered')
})

test('a replay is known by the signature as well', async () => {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  const body = '{"n":1}'
  const sent = { body, signature: signature(hook.secret, body) }
  await c.call(ops.workflows.disable, { org: c.org, workflow: slug })
  const { receipt } = await deliver(hook, sent)
  assert.equal(receipt.delivery.outcome, 'disabled')
  await c.call(ops.workflows.enable, { org: c.org, workflow: slug })
  const run = (await replay(receipt.delivery.id)).matches[0]!.runId
  const again = await deliver(hook, sent)
  assert.deepEqual([again.receipt.delivery.outcome, again.receipt.runs[0]?.id], ['duplicate', run])
})

test('what was verified is replayed though the key of its secret is missing', async () => {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  const body = '{"n":2}'
  const { receipt } = await deliver(hook, { body, signature: signature(hook.secret, body) })
  assert.equal(receipt.delivery.outcome, 'triggered')
  const { count } = await c.db`
    update owned_secrets
    set sealed = regexp_replace(sealed, '[.][^.]+', '.gone')
    where owner_id = (select source_id from deliveries where id = ${receipt.delivery.id})`
  assert.equal(count, 1)
  assert.equal((await replay(receipt.delivery.id)).outcome, 'triggered')
})
