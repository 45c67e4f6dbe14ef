import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { App, us_listen_socket_close, us_socket_local_port } from 'uws-pack'

/**
 * Opens a WebSocket from this process to itself, whose cork is lent. Nobody else gets to it: its path is a secret, and
 * it stops listening as soon as the one connection is there.
 */
export function openLender() {
  const path = `/${randomBytes(16).toString('hex')}`
  let socket
  let listening
  let client
  const app = App()
  app.ws(path, {
    idleTimeout: 0,
    upgrade(res, req, context) {
      res.upgrade({}, req.getHeader('sec-websocket-key'), '', '', context)
    },
    open(opened) {
      socket = opened
      us_listen_socket_close(listening)
    },
    close() {
      socket = undefined
    },
  })
  // Without this interface there is no lender.
  app.listen('127.0.0.1', 0, (token) => {
    listening = token
    if (token) client = connectTo(us_socket_local_port(token), path)
  })

  return {
    /** Calls `act` within the cork; false: there is none now. */
    cork(act) {
      if (!socket) return false
      socket.cork(act)
      return true
    },
    close() {
      app.close()
      client?.destroy()
    },
  }
}

function connectTo(port, path) {
  const client = connect(port, '127.0.0.1')
  client.unref()
  client.on('error', () => undefined)
  client.write(
    [
      `GET ${path} HTTP/1.1`,
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
      'Sec-WebSocket-Version: 13',
      '\r\n',
    ].join('\r\n'),
  )
  return client
}
