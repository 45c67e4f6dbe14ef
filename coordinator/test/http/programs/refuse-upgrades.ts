// Asks twice for an upgrade that is refused, after a look-up that takes a moment. What µWS says of it goes to stderr,
// which the test reads.
import { once } from 'node:events'
import { connect } from 'node:net'
import { Fault } from '@windlass/shared/errors.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { pause } from '@windlass/shared/time.ts'
import { startStub } from '../stub-server.ts'

const server = await startStub({
  runner: async () => {
    await pause(20)
    throw new Fault('UNAUTHENTICATED')
  },
})
const { path } = allOps.find((row) => row.wire === 'socket')!
const HEAD = [
  `GET ${path} HTTP/1.1`,
  'Host: localhost',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Authorization: Bearer nobody',
]
for (let n = 0; n < 2; n++) {
  const socket = connect(server.port, '127.0.0.1')
  socket.write(`${HEAD.join('\r\n')}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  process.stdout.write(`${answer.toString().slice(9, 12)} `)
  socket.destroy()
}
await server.close()
