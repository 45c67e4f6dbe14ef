import assert from 'node:assert/strict'
import { after, before, mock, test } from 'node:test'
import type { OrgId, RunnerId } from '@windlass/shared/ids.ts'
import type { AgentSocket } from '../../agent-link/agent-socket.ts'
import { OpenSockets } from '../../agent-link/open-sockets.ts'
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
  const open = new OpenSockets({ now: () => now })
  const ends: string[] = []
  const endOne = (runner: string, orgId = 'one') => {
    const socket = open.add({ id: runner as RunnerId, orgId: orgId as OrgId }, aSocket(ends).socket)
    open.forget(runner, socket)
    socket.close(1013, 'again')
    return ends.at(-1)
  }
  const ofA = Array.from({ length: 17 }, () => endOne('a'))
  assert.deepEqual(ofA, [...Array.from({ length: 16 }, () => 'close'), 'cut'])
  assert.equal(endOne('b'), 'close')
  now = 40_000
  assert.equal(endOne('a'), 'close')
  for (let n = 1; n < 500; n++) assert.equal(endOne(`${n}`), 'close')
  assert.equal(endOne('another'), 'cut')
  assert.equal(endOne('another', 'other org'), 'close')
})

test('of connections that have said no whole frame an org has some hundred, and the oldest goes first', () => {
  const open = new OpenSockets()
  const connect = (n: number, orgId = 'one') => {
    const ends: string[] = []
    const { socket, say } = aSocket(ends)
    open.add({ id: `${n}` as RunnerId, orgId: orgId as OrgId }, socket)
    return { ends, say }
  }
  const [talks, begins, silent] = [connect(1), connect(2), connect(3)]
  talks.say('{"t":"hello"}')
  begins.say('+o{"t":"hel')
  connect(4, 'other org')
  for (let n = 5; n < 505; n++) connect(n)
  assert.deepEqual([talks.ends, begins.ends, silent.ends], [[], ['cut'], ['cut']])
})

test('a connection that says no hello is cut after half a minute', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const open = new OpenSockets()
    const [silent, begins, talks] = ['a', 'b', 'c'].map((id) => {
      const ends: string[] = []
      const { socket, say } = aSocket(ends)
      open.add({ id: id as RunnerId, orgId: 'one' as OrgId }, socket)
      return { ends, say }
    })
    talks!.say('{"t":"hello"}')
    begins!.say('+o{"t":"hel')
    mock.timers.tick(30_000)
    assert.deepEqual([silent!.ends, begins!.ends, talks!.ends], [['cut'], ['cut'], []])
  } finally {
    mock.timers.reset()
  }
})

/** A connection of which nothing is left but how it ends, and what it says. */
function aSocket(ends: string[]) {
  const listeners: ((text: string) => void)[] = []
  const socket: AgentSocket = {
    send() {},
    close: () => ends.push('close'),
    cut: () => ends.push('cut'),
    onMessage: (listener) => listeners.push(listener),
    onUnread() {},
    whenRead: () => Promise.resolve(),
    onClose() {},
  }
  const say = (text: string) => {
    for (const listener of listeners) listener(text)
  }
  return { socket, say }
}
