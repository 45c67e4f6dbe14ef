import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook, signature } from '../_kit/inbound.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MIB = 1024 * 1024
/** Nearly the whole of a delivery by default, so that three of them are what an address may have. */
const SLOW_BYTES = 24 * MIB
const ADDRESSES = 3
const EACH = 3

let c: TestCoordinator
let hook: Hook

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), TRUSTED_PROXIES: '127.0.0.1' })
  const session = await aSession(c.db, { orgId: c.orgId })
  const { slug } = await aWorkflow(c, { descriptor: { webhook: {} } })
  hook = await aHook(c, session, slug)
})
after(() => c.stop())

/** A body that looks signed and of which the last byte never comes. */
function begun(address: string): Socket {
  const { hostname, port, pathname } = new URL(hook.url)
  const socket = connect(Number(port), hostname)
  // One that gives way while it is still written is reset; its answer came before that.
  socket.on('error', () => {})
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${hostname}`,
    `x-forwarded-for: ${address}`,
    `x-windlass-signature: ${signature('somebody else', '')}`,
    'content-type: application/json',
    `content-length: ${SLOW_BYTES + 1}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.write(Buffer.alloc(SLOW_BYTES, ' '))
  return socket
}

test('bodies that never end keep nobody else from delivering: the oldest of them gives way', async (t) => {
  const slow: Socket[] = []
  t.after(() => slow.forEach((socket) => socket.destroy()))
  const answers: string[] = []
  for (let n = 0; n < ADDRESSES * EACH; n++) {
    const socket = begun(`203.0.113.${1 + (n % ADDRESSES)}`)
    socket.setEncoding('utf8').on('data', (text: string) => answers.push(text))
    slow.push(socket)
  }
  await untilPolled('the room to be full', () => answers.length > 0)
  const body = JSON.stringify({ text: 'x'.repeat(900_000) })
  const headers = { 'x-forwarded-for': '198.51.100.7' }
  const { status, receipt } = await deliver(hook, { body, headers })
  assert.deepEqual([status, receipt.delivery.outcome], [200, 'triggered'])
  for (const answer of answers) {
    assert.match(answer, /^HTTP\/1\.1 503 /)
    // On a busy machine the slowest may be the one that asks for the rest of the room, and is refused itself.
    assert.match(
      answer,
      /came too slowly while others needed the room; send it again|Deliveries of others are under way/,
    )
  }
})
