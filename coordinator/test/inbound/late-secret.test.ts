// The source of a delivery is looked up before the body comes, which may take a minute; runs start afterwards.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { DeliveryReceipt } from '@windlass/shared/model/delivery.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { pause } from '@windlass/shared/time.ts'
import { aConnection } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, type Hook, signature } from '../_kit/inbound.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** More than a secret may serve without being looked up. */
const SLOW_MS = 1100
const BODY = '{"what":"costs money"}'

let c: TestCoordinator
let session: string
let lookUps = 0

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
  const { sourceGate } = c.deps
  const pass = sourceGate.pass.bind(sourceGate)
  sourceGate.pass = async (...args) => {
    const found = await pass(...args)
    lookUps++
    announce()
    return found
  }
})
after(() => c.stop())

interface Answer {
  status: number | undefined
  receipt: DeliveryReceipt
}

/** Sends a body in two pieces with the act between them. */
async function whileItComes(url: string, headers: Record<string, string>, act: () => unknown): Promise<Answer> {
  lookUps = 0
  const outgoing = request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'content-length': BODY.length, ...headers },
  })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  outgoing.write(BODY.slice(0, 10))
  await until('the webhook to be looked up', () => lookUps === 1)
  await act()
  await pause(SLOW_MS)
  outgoing.end(BODY.slice(10))
  const [response] = await answered
  const receipt = JSON.parse(Buffer.concat(await response.toArray()).toString()) as DeliveryReceipt
  return { status: response.statusCode, receipt }
}

async function aReceiver() {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  const asked = { org: c.org, workflow: slug }
  return {
    slug,
    hook,
    rotate: (overlapMs: number) => c.call(ops.webhooks.rotate, { ...asked, overlapMs }, { apiKey: session }),
    runs: async () => (await c.call(ops.runs.list, asked)).runs.length,
    outcomes: async () => (await c.call(ops.deliveries.list, asked)).deliveries.map(({ outcome }) => outcome),
  }
}

const signed = (hook: Hook) => ({ 'x-windlass-signature': signature(hook.secret, BODY) })

test('a secret that is replaced while a body comes does not serve for it', async () => {
  const { hook, rotate, runs, outcomes } = await aReceiver()
  const { status } = await whileItComes(hook.url, signed(hook), () => rotate(0))
  assert.deepEqual([status, await runs(), await outcomes()], [401, 0, ['unverified']])
})

test('nor does one that is shown as it is, nor a signature where it is no longer asked for', async () => {
  const { hook, slug, rotate, runs } = await aReceiver()
  const set = { org: c.org, workflow: slug, auth: 'bearer' } as const
  const unsigned = await whileItComes(hook.url, signed(hook), () => c.call(ops.webhooks.set, set, { apiKey: session }))
  const shown = await whileItComes(hook.url, { authorization: `Bearer ${hook.secret}` }, () => rotate(0))
  assert.deepEqual([unsigned.status, shown.status, await runs()], [401, 401, 0])
})

test('a secret that serves on takes a slow body, and which one is current does not matter', async () => {
  const { hook, rotate, runs } = await aReceiver()
  const { status, receipt } = await whileItComes(hook.url, signed(hook), () => rotate(60_000))
  assert.deepEqual([status, receipt.delivery.outcome, await runs(), lookUps], [200, 'triggered', 1, 2])
})

test('a webhook that is gone, or a connection that is paused, while a body comes starts nothing', async () => {
  const { hook, slug } = await aReceiver()
  const remove = () => c.call(ops.workflows.delete, { org: c.org, workflow: slug })
  assert.equal((await whileItComes(hook.url, signed(hook), remove)).status, 404)

  const connection = await aConnection(c, session, { kind: 'bearer', bearer: { header: 'X-Token', prefix: '' } })
  await aWorkflow(c, { descriptor: { connections: [{ connection: connection.name, events: ['*'] }] } })
  const stop = () => c.call(ops.connections.update, { connection: connection.id, enabled: false })
  const { status, receipt } = await whileItComes(connection.url, { 'x-token': connection.secret }, stop)
  assert.deepEqual([status, receipt.delivery.outcome, receipt.runs], [200, 'disabled', []])
})
