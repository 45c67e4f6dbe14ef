import { once } from 'node:events'
import { connect } from 'node:net'

/** Writes bytes as they are, which `fetch` would refuse to send, and reads until the server closes or `until` has come. */
export async function rawRequest(
  port: number,
  lines: string[],
  body: string | Buffer = '',
  until = /\r\n\r\n/,
): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  socket.write(body)
  let text = ''
  socket.setTimeout(60_000, () => socket.destroy(new Error(`no answer in 60 s; so far: ${text}`)))
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString('latin1')
    if (until.test(text)) break
  }
  socket.destroy()
  return text
}
