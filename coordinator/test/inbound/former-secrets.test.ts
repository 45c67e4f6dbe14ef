// Senders go on by the secret that they have until its promised end, whoever asks for new ones meanwhile.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aConnection, push } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 0 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

async function aRotated() {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  let sent = 0
  return {
    hook,
    rotate: (overlapMs: number) =>
      c.call(ops.webhooks.rotate, { org: c.org, workflow: slug, overlapMs }, { apiKey: session }),
    statusesBy: async (...secrets: string[]) => {
      const statuses: number[] = []
      for (const secret of secrets)
        statuses.push((await deliver({ ...hook, secret }, { body: `{"n":${++sent}}` })).status)
      return statuses
    },
  }
}

test('a rotation that is asked for again leaves the senders theirs, and 0 ends all', async () => {
  const { hook, rotate, statusesBy } = await aRotated()
  const lost = await rotate(60_000)
  const again = await rotate(30_000)
  assert.equal(again.webhook.previousSecretUntil, lost.webhook.previousSecretUntil, 'of several the last')
  assert.deepEqual(await statusesBy(hook.secret, lost.secret, again.secret), [200, 200, 200])
  const only = await rotate(0)
  assert.equal(only.webhook.previousSecretUntil, null)
  assert.deepEqual(await statusesBy(hook.secret, lost.secret, again.secret, only.secret), [401, 401, 401, 200])
})

test('a rotation is refused where it would end a former secret early', async () => {
  const { hook, rotate, statusesBy } = await aRotated()
  const second = await rotate(60_000)
  for (let i = 0; i < 4; i++) await rotate(60_000)
  await assert.rejects(rotate(60_000), refusal('CONFLICT', 'overlapMs'))
  assert.deepEqual(await statusesBy(hook.secret, second.secret), [200, 200])
  // The first has come to its end, and nobody has cleaned yet.
  await c.db`update owned_secrets set ends_at = now() where owner_id = ${hook.id} and slot = 'previous'`
  const last = await rotate(60_000)
  assert.deepEqual(await statusesBy(hook.secret, second.secret, last.secret), [401, 200, 200])
})

test('the secret that is set is set again without a change, but for what 0 ends', async () => {
  const github = await aConnection(c, session, { kind: 'github', secret: 'that-of-the-senders' })
  const secret = 'the-new-one-of-the-provider'
  const put = (overlapMs?: number) =>
    c.call(ops.connections.setSecret, { connection: github.id, secret, overlapMs }, { apiKey: session })
  const state = async () => {
    const entries = await entriesOf(c, { target: github.id, action: ['connections.setSecret'] })
    return [(await push(github, '{}')).status, (await push({ ...github, secret }, '{}')).status, entries.length]
  }
  const first = await put()
  assert.deepEqual([await put(), await put(1000), await state()], [first, first, [200, 200, 1]])
  const ended = await put(0)
  assert.deepEqual(ended.connection, {
    ...first.connection,
    previousSecretUntil: null,
    lastDeliveryAt: ended.connection.lastDeliveryAt,
  })
  assert.deepEqual([(await put(0)).connection.rotatedAt, await state()], [first.connection.rotatedAt, [401, 200, 2]])
})
