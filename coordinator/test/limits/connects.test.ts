import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createConnects } from '../../limits/connects.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinator, refusal, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a runner that connects too often is refused, and uses up nothing of its org', () => {
  const connects = createConnects({ runner: 2, org: 4 })
  const orgId = newId('org')
  const [one, two] = [newId('rnr'), newId('rnr')].map((id) => ({ id, orgId }))
  for (let n = 0; n < 2; n++) connects.take(one!)
  for (let n = 0; n < 5; n++) assert.throws(() => connects.take(one!), refusal('RATE_LIMITED'))
  for (let n = 0; n < 2; n++) connects.take(two!)
  assert.throws(() => connects.take({ id: newId('rnr'), orgId }), /The runners of this org have connected 4 times/)
  connects.take({ id: newId('rnr'), orgId: newId('org') })
})

test('an agent that has connected 60 times in a minute is told to come again, and another one gets in', async () => {
  const [agent, other] = [await anAgent(c), await anAgent(c, { name: 'other' })]
  for (let n = 0; n < 60; n++) c.deps.sockets.connects.take({ id: agent.id, orgId: c.orgId })
  const { status, retryAfter } = await asked(await agent.token())
  assert.deepEqual([status, retryAfter], [429, '10'])
  await assert.rejects(agent.dial(), /refuses the socket/)
  await other.connect()
})

/** What is answered to an agent that asks for its socket. */
function asked(token: string): Promise<{ status: number | undefined; retryAfter: string | undefined }> {
  const headers = {
    authorization: `Bearer ${token}`,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  }
  return new Promise((resolve, reject) => {
    const answer = ({ statusCode: status, headers }: IncomingMessage) => {
      resolve({ status, retryAfter: headers['retry-after'] })
      sent.destroy()
    }
    const sent = request(`${c.url}/runner/v1/socket`, { headers })
    sent.on('response', answer).on('upgrade', answer).on('error', reject).end()
  })
}
