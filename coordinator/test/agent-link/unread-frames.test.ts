import assert from 'node:assert/strict'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import type { AgentSocket } from '../../agent-link/agent-socket.ts'
import { createUnreadFrames } from '../../agent-link/unread-frames.ts'
import { aHello, anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'

const MIB = 1024 * 1024
let c: TestCoordinator
const sockets: Socket[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(async () => {
  for (const socket of sockets) socket.destroy()
  await c.stop()
})

const aSocket = (name: string, cut: string[]) => ({ cut: () => cut.push(name) }) as unknown as AgentSocket

test('over the limit of an org the connection with most unread bytes is cut, and none of another org', () => {
  const cut: string[] = []
  const unread = createUnreadFrames({ org: 100, all: 1000 })
  const [a, b, other] = [aSocket('a', cut), aSocket('b', cut), aSocket('other', cut)]
  unread.note('two', other, 100)
  unread.note('one', a, 60)
  unread.note('one', b, 30)
  // One that takes what it was sent stays, however slowly.
  unread.note('one', a, 40)
  unread.note('one', b, 60)
  assert.deepEqual(cut, [])
  unread.note('one', b, 61)
  assert.deepEqual(cut, ['b'])
  unread.note('one', b, 0)
  unread.note('one', a, 100)
  assert.deepEqual(cut, ['b'])
})

test('over the limit of all orgs the org with most unread bytes gives way', () => {
  const cut: string[] = []
  const unread = createUnreadFrames({ org: 100, all: 150 })
  unread.note('one', aSocket('a', cut), 90)
  unread.note('two', aSocket('b', cut), 50)
  unread.note('two', aSocket('c', cut), 20)
  assert.deepEqual(cut, ['a'])
})

/** Says hello and reads nothing. */
async function deafAgent(): Promise<{ agent: TestAgent; isGone: () => boolean }> {
  const agent = await anAgent(c)
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    authorization: `Bearer ${await agent.token()}`,
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  const upgrading = request(`${c.url}/runner/v1/socket`, { headers }).end()
  const socket = await new Promise<Socket>((resolve, reject) => {
    upgrading.once('upgrade', (_, upgraded) => resolve(upgraded))
    upgrading.once('error', reject)
  })
  sockets.push(socket)
  socket.on('error', () => {})
  socket.write(maskedText(JSON.stringify(aHello()).padEnd(200)))
  await until('it to be let in', () => c.deps.sockets.ids().includes(agent.id))
  return { agent, isGone: () => !c.deps.sockets.ids().includes(agent.id) }
}

/** A text of 126 to 65,535 bytes as RFC 6455 has it, under a mask of zeros. */
function maskedText(text: string): Buffer {
  const head = Buffer.from([0x81, 0x80 | 126, 0, 0, 0, 0, 0, 0])
  head.writeUInt16BE(Buffer.byteLength(text), 2)
  return Buffer.concat([head, Buffer.from(text)])
}

test('agents that read nothing do not fill the memory: the one that leaves most is cut', async (t) => {
  const { mock } = t.mock.method(c.deps.log, 'warn', () => {})
  const [first, second, third] = [await deafAgent(), await deafAgent(), await deafAgent()]
  const say = ({ agent }: typeof first, mib: number) =>
    c.deps.sockets.tell(agent.id, { t: 'refused', code: 'REVOKED', message: 'x'.repeat(mib * MIB) })
  say(first, 20)
  say(second, 55)
  assert.deepEqual([first.isGone(), second.isGone()], [false, false])
  say(third, 40)
  assert.deepEqual([first.isGone(), second.isGone(), third.isGone()], [false, true, false])
  const facts = mock.calls.map(({ arguments: [name, facts] }) => [name, (facts as { orgId: string }).orgId])
  assert.deepEqual(facts, [['agent.unread.cut', c.orgId]])
})
