// One of two coordinators cannot reach the database any more: its packets get no answer. The other one can.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import { onMoment } from '@windlass/shared/probe.ts'
import { aHello, anAgent, anInstance, placementOf, takeNext, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWay } from '../_kit/way.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** Asks for an upgrade as an agent does. */
async function upgradeAt(c: Pick<TestCoordinator, 'url'>, agent: TestAgent) {
  const headers = {
    authorization: `Bearer ${await agent.token()}`,
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  }
  const request = get(`${c.url}/runner/v1/socket`, { headers })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.resume()
  return { status: response.statusCode, retryAfter: response.headers['retry-after'] }
}

/** Looks of another coordinator are never `away`. */
const untilLooked = (wanted: boolean) =>
  new Promise<void>((resolve) => {
    const stop = onMoment((moment) => {
      if (moment.name !== 'database.looked' || moment.facts.isAway !== wanted) return
      stop()
      resolve()
    })
  })

async function twoCoordinators(t: TestContext) {
  const near = await aCoordinatorOfItsOwn()
  const way = await aWay(near.deps.config.databaseUrl)
  t.after(async () => {
    way.comeBack()
    await near.stop()
    way.close()
  })
  const far = await near.another({}, { databaseUrl: way.url })
  return { near, far, way }
}

test('a coordinator that cannot reach the database lets its agents go and refuses them at once', async (t) => {
  const { near, far, way } = await twoCoordinators(t)
  await aWorkflow(near, { slug: 'any' })
  await aRun(near, { workflow: 'any' })
  const agent = await anAgent(near)
  const instance = anInstance()
  const link = await agent.at(far).connect([], { instance, connection: 1 })
  const offer = await takeNext(agent.at(far), link)
  const unwelcomed = await agent.at(far).dial()
  const holds = [placementOf(offer)]

  const isAway = untilLooked(true)
  way.fallSilent()
  link.send({ t: 'heartbeat', n: 1, holds })
  unwelcomed.send(aHello({ instance, connection: 2, holds }))
  await isAway
  // Neither its heartbeat nor its hello waits for the timeout of a statement.
  for (const { code, reason } of [await link.closed(), await unwelcomed.closed()]) {
    assert.equal(code, 1013)
    assert.match(reason, /cannot reach its database/)
  }
  const { calls } = t.mock.method(far.deps.runnerKeys, 'verify').mock
  assert.deepEqual(await upgradeAt(far, agent), { status: 503, retryAfter: '1' })
  const asked = t.mock.method(far.deps, 'db').mock
  assert.equal((await fetch(`${far.url}/readyz`)).status, 503)
  const isOfReady = (call: { arguments: unknown[] }) => String(call.arguments[0]).includes('transaction_read_only')
  assert.equal(calls.length + asked.calls.filter(isOfReady).length, 0, 'nothing is asked of the database')
  asked.restore()
  const elsewhere = await agent.at(near).connect(holds, { instance, connection: 3 })
  assert.deepEqual((await elsewhere.heartbeat(1, ...holds)).stale, [])

  // The other one looks too: its looks say that nothing is away.
  way.comeBack()
  for (;;) {
    await untilLooked(false)
    const back = await agent
      .at(far)
      .dial()
      .catch(() => undefined)
    if (!back) continue
    back.send(aHello({ instance, connection: 4, holds }))
    await back.next('welcome')
    assert.deepEqual((await back.heartbeat(1, ...holds)).stale, [])
    return
  }
})
