import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { AgentSocket } from '../../runners/agent-socket.ts'
import { OpenSockets } from '../../runners/open-sockets.ts'
import { aHello, anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinator()
  agent = await anAgent(c)
})
after(async () => {
  agent.close()
  await c.stop()
})

// Sixty connections with a message that had no end had 900 MB of a coordinator for as long as they lasted.
test('a runner has twelve connections beside its own, and a further one ends the oldest', async () => {
  const own = await agent.connect()
  const links = []
  for (let n = 0; n < 14; n++) links.push(await agent.dial())
  assert.equal((await links[0]!.closed()).code, 1006)
  assert.equal((await links[1]!.closed()).code, 1006)
  assert.equal((await own.heartbeat(1)).n, 1)
  links[2]!.send(aHello())
  await links[2]!.next('welcome')
})

test('of connections that are ended time and again few may lie here', () => {
  let now = 0
  const open = new OpenSockets(() => now)
  const ends: string[] = []
  const aSocket = (): AgentSocket => ({
    send() {},
    close: () => ends.push('close'),
    cut: () => ends.push('cut'),
    onMessage() {},
    onClose() {},
  })
  const endOne = (runner: string) => {
    const socket = open.add(runner, aSocket())
    open.forget(runner, socket)
    socket.close(1013, 'again')
    return ends.at(-1)
  }
  const ofA = Array.from({ length: 17 }, () => endOne('a'))
  assert.deepEqual(ofA, [...Array.from({ length: 16 }, () => 'close'), 'cut'])
  assert.equal(endOne('b'), 'close')
  now = 40_000
  assert.equal(endOne('a'), 'close')
})
