import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { openPoster } from '../../load/http-load.ts'

test('a connection that the server closed while it was silent is opened again', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('data', () => socket.write('HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}'))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const poster = await openPoster({ url: `http://127.0.0.1:${port}`, path: '/', apiKey: 'none', body: '{}' })
  try {
    assert.equal((await poster.post()).status, 201)
    sockets[0]!.destroy()
    // The end of the connection has reached us once another one that was opened later has been answered.
    const other = await openPoster({ url: `http://127.0.0.1:${port}`, path: '/', apiKey: 'none', body: '{}' })
    await other.post()
    other.close()
    assert.equal((await poster.post()).status, 201)
    assert.equal(sockets.length, 3)
  } finally {
    poster.close()
    server.close()
  }
})
