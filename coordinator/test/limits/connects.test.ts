import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createConnects } from '../../limits/connects.ts'
import { aHello, anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { becomeReadOnly } from '../_kit/read-only.ts'
import { untilPolled } from '../_kit/until.ts'

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

test('a connection that is given back counts for its runner and not for its org', () => {
  const connects = createConnects({ runner: 24, org: 900 })
  const orgId = newId('org')
  const runners = Array.from({ length: 900 }, () => ({ id: newId('rnr'), orgId }))
  for (let n = 0; n < 23; n++)
    for (const runner of runners) {
      connects.take(runner)
      connects.giveBack(runner)
    }
  for (const runner of runners) connects.take(runner)
  for (const runner of runners) assert.throws(() => connects.take(runner), /This runner has connected 24 times/)
})

test('what is given back twice, or in the minute after, leaves no more than nothing counted', () => {
  const connects = createConnects({ runner: 9, org: 1 })
  const runner = { id: newId('rnr'), orgId: newId('org') }
  connects.take(runner)
  for (let n = 0; n < 3; n++) connects.giveBack(runner)
  connects.take(runner)
  assert.throws(() => connects.take(runner), refusal('RATE_LIMITED'))
})

test('agents that tried again and again while the database took no writes are let in when it does', async (t) => {
  const own = await aCoordinatorOfItsOwn()
  t.after(() => own.stop())
  const agents = [await anAgent(own), await anAgent(own, { name: 'other' })]
  Object.assign(own.deps.sockets, { connects: createConnects({ runner: 60, org: 2 }) })
  await becomeReadOnly(own, true)
  await untilPolled('writes are refused', async () => !(await isReady(own)))
  // Some of its connections may only now hear that they were ended: keys cannot be looked up, and nothing is counted.
  await untilPolled('sockets are opened', () => agents[0]!.dial().then(closed, () => undefined))
  for (let n = 0; n < 3; n++) for (const agent of agents) assert.equal(await codeOfHello(agent), 1013)
  await becomeReadOnly(own, false)
  await untilPolled('writes are taken', () => isReady(own))
  for (const agent of agents) await agent.connect()
  await assert.rejects(agents[0]!.dial(), /refuses the socket/)
})

test('a hello that fails while others would be let in counts', async (t) => {
  const own = await aCoordinatorOfItsOwn()
  t.after(() => own.stop())
  const agent = await anAgent(own)
  Object.assign(own.deps.sockets, { connects: createConnects({ runner: 60, org: 1 }) })
  await own.db`alter table runners add constraint no_hello check (connection = 0) not valid`
  assert.equal(await codeOfHello(agent), 1013)
  await assert.rejects(agent.dial(), /refuses the socket/)
})

async function isReady({ url }: TestCoordinator): Promise<boolean> {
  return (await fetch(`${url}/readyz`)).ok
}

async function closed(link: Awaited<ReturnType<TestAgent['dial']>>): Promise<true> {
  link.send(aHello())
  await link.closed()
  return true
}

async function codeOfHello(agent: TestAgent): Promise<number> {
  const link = await agent.dial()
  link.send(aHello())
  return (await link.closed()).code
}

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
