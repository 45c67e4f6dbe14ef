import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { App, us_listen_socket_close, us_socket_local_port } from 'uws-pack'

/** How long it is without a cork when its connection was lost. */
const AGAIN_MS = 1000

/**
 * Lends the cork of a WebSocket from this process to itself. Whatever ends the connection, there is another one soon:
 * slow readers need the cork for as long as the process runs. Nobody else gets to it: its path is a secret, and it
 * stops listening as soon as the one connection is there.
 */
export function openLender() {
  const path = `/${randomBytes(16).toString('hex')}`
  let isClosed = false
  let again
  let socket
  let listening
  let client
  // The one for all connections: µWS frees no app.
  const app = App()
  app.ws(path, {
    // Nobody answers pings here. With them and without a time, µWS sends one after 252 s, and closes 4 s later.
    idleTimeout: 0,
    sendPingsAutomatically: false,
    upgrade(res, req, context) {
      res.upgrade({}, req.getHeader('sec-websocket-key'), '', '', context)
    },
    open(opened) {
      socket = opened
      stopListening()
    },
    close() {
      socket = undefined
    },
  })
  open()

  function open() {
    app.listen('127.0.0.1', 0, (token) => {
      listening = token
      // Without this interface there is no lender, and none while no descriptor is free.
      if (token) client = connectTo(us_socket_local_port(token), path).on('close', reopen)
      else reopen()
    })
  }

  function reopen() {
    if (isClosed) return
    stopListening()
    socket?.close()
    again = setTimeout(open, AGAIN_MS)
    again.unref()
  }

  function stopListening() {
    if (listening) us_listen_socket_close(listening)
    listening = undefined
  }

  return {
    /** Calls `act` within the cork; false: there is none now. */
    cork(act) {
      if (!socket) return false
      socket.cork(act)
      return true
    },
    close() {
      isClosed = true
      clearTimeout(again)
      app.close()
      client?.destroy()
    },
  }
}

function connectTo(port, path) {
  const client = connect(port, '127.0.0.1')
  client.unref()
  client.on('error', () => undefined)
  // Else it would not see that the other end has closed.
  client.resume()
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
