// Asks twice for an upgrade that is refused and ten times for one that is not, after a look-up that takes a moment, and
// never with two sockets open. What µWS says of it goes to stderr, which the test reads.
import { once } from 'node:events'
import { connect } from 'node:net'
import { allOps } from '@windlass/shared/ops/index.ts'
import { pause } from '@windlass/shared/time.ts'
import { pathOf, startStub, verifiers } from '../stub-server.ts'

const server = await startStub({
  runner: async (token) => {
    await pause(20)
    return verifiers.runner(token)
  },
})
const row = allOps.find(({ wire }) => wire === 'socket')!
const tokens = ['nobody', 'nobody', ...Array.from({ length: 10 }, () => 'runner')]
for (const token of tokens) {
  const socket = connect(server.port, '127.0.0.1')
  socket.write(
    [
      `GET ${pathOf(row)} HTTP/1.1`,
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
      `Authorization: Bearer ${token}`,
      '\r\n',
    ].join('\r\n'),
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  process.stdout.write(`${answer.toString().slice(9, 12)} `)
  socket.destroy()
}
await server.close()
