import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { createActivity } from '../../status/activity.ts'
import { aLog } from '../_kit/an-agent.ts'
import { createOneRequestServer } from '../../health/one-request.ts'
import { startHealth } from '../../health/server.ts'

const HEAD = 'GET /livez HTTP/1.1\r\nhost: here\r\n\r\n'
const LAST_HEAD = 'GET /livez HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n'

async function aServer(t: TestContext, withinMs?: number) {
  let asked = 0
  const answer = { status: 200, type: 'text/plain', body: 'alive\n' }
  const { server, close } = createOneRequestServer(() => (asked++, answer), { onFailure: assert.fail, withinMs })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(close)
  const { port } = server.address() as net.AddressInfo
  return { port, asked: () => asked }
}

/** Its end is not awaited: the other side may reset it. */
function aConnection(t: TestContext, port: number) {
  const socket = net.connect({ port, host: '127.0.0.1' }).on('error', () => {})
  t.after(() => socket.destroy())
  // Not by `once`, which rejects when the server closes it with bytes that it has not read: that is a reset.
  return { socket, closed: new Promise<void>((resolve) => socket.once('close', () => resolve())) }
}

/** A health server, and how often the text of its metrics was built. */
async function aHealth(t: TestContext, collect = () => {}) {
  let built = 0
  const { log, lines } = aLog()
  const deps = {
    log,
    activity: createActivity(),
    slots: { total: () => (built++, collect(), 4), free: () => 4 },
    facts: { current: () => (collect(), { unready: [] }) },
    agentRuns: { all: () => [], size: 0 },
    spool: { stats: () => ({ unacknowledged: 0 }) },
    bundles: { stats: () => ({ bytes: 0 }) },
    processes: { stats: () => ({ survivors: 0 }) },
  } as unknown as Parameters<typeof startHealth>[0]
  const health = await startHealth(deps, { host: '127.0.0.1', port: 0 })
  t.after(() => health.close())
  const url = health.address!
  return { url, port: Number(new URL(url).port), built: () => built, lines }
}

test('of pipelined requests the first alone is answered, and the connection is closed', async (t) => {
  const { port } = await aHealth(t)
  const { socket, closed } = aConnection(t, port)
  let heard = ''
  socket.on('data', (chunk) => (heard += chunk.toString()))
  socket.write(HEAD.repeat(5_000) + LAST_HEAD)
  await closed
  assert.equal(heard.split('HTTP/1.1 200 OK').length - 1, 1)
})

test('a head that comes in pieces is answered, also to one who has closed its half', async (t) => {
  const { port } = await aServer(t)
  const { socket } = aConnection(t, port)
  await once(socket, 'connect')
  socket.setNoDelay(true)
  for (const piece of HEAD) await new Promise((sent) => socket.write(piece, sent))
  socket.end()
  assert.match(await text(socket), /^HTTP\/1.1 200 OK\r\n.*connection: close\r\n\r\nalive\n$/s)
})

test('what is no request, or has no end, is refused', async (t) => {
  const { port, asked } = await aServer(t)
  for (const wrong of ['hello\r\n\r\n', 'GET /'.padEnd(8_192, 'a')]) {
    const { socket } = aConnection(t, port)
    socket.write(wrong)
    assert.match(await text(socket), /^HTTP\/1.1 400 /)
  }
  assert.equal(asked(), 0)
})

test('a head that does not come is not waited for', async (t) => {
  const { port } = await aServer(t, 50)
  const { socket, closed } = aConnection(t, port)
  socket.resume().write('GET /livez')
  const drip = setInterval(() => socket.write('a'), 5)
  t.after(() => clearInterval(drip))
  await closed
})

test('those who only hold connections lose them to others, who are answered', async (t) => {
  const { port, url } = await aHealth(t)
  let closed = 0
  for (let n = 0; n < 200; n++) {
    const { socket } = aConnection(t, port)
    socket.resume().on('close', () => closed++)
    await once(socket, 'connect')
  }
  const answer = await fetch(`${url}/livez`)
  assert.equal(answer.status, 200)
  await untilPolled('the others are closed', () => closed >= 200 - 64)
})

test('the text of /metrics is built at most once a second', async (t) => {
  const since = performance.now()
  const { url, built } = await aHealth(t)
  for (let n = 0; n < 50; n++) {
    const answer = await fetch(`${url}/metrics`)
    assert.match(await answer.text(), /^windlass_agent_slots 4$/m)
  }
  const seconds = (performance.now() - since) / 1000
  assert.ok(built() <= 1 + seconds, `built ${built()} times in ${seconds} s`)
})

test('what fails is answered with 500, logged once, and built again for the next who asks', async (t) => {
  let isBroken = true
  const { url, lines } = await aHealth(t, () => {
    if (isBroken) throw new Error('no such file')
  })
  for (const path of ['/metrics', '/metrics', '/readyz', '/readyz']) {
    const answer = await fetch(`${url}${path}`)
    assert.equal(answer.status, 500)
    assert.doesNotMatch(await answer.text(), /no such file/)
  }
  assert.equal((await fetch(`${url}/livez`)).status, 200)
  assert.deepEqual(
    lines.filter(({ name }) => name === 'health.failed').map(({ name, level, path }) => [name, level, path]),
    [
      ['health.failed', 'error', '/metrics'],
      ['health.failed', 'error', '/readyz'],
    ],
  )
  isBroken = false
  assert.equal((await fetch(`${url}/metrics`)).status, 200)
})
