import { connect, type Socket } from 'node:net'

/** A closed loop of POSTs over kept-alive connections: each sends its next request when it has its answer. */
export interface HttpLoad {
  answered: number
  /** Statuses other than the expected one. */
  failed: number
  tookMs: number
}

export interface HttpLoadOptions {
  url: string
  path: string
  apiKey: string
  body: string
  connections: number
  requests: number
  expect: number
}

/**
 * A client that does next to nothing, since it shares the machine with what it measures: one fixed request as bytes, and
 * of the answer only status and length are looked at. Answers are small and have a content-length.
 */
export async function httpLoad(options: HttpLoadOptions): Promise<HttpLoad> {
  const { hostname, port } = new URL(options.url)
  const request = Buffer.from(
    `POST ${options.path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${options.apiKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(options.body)}\r\n\r\n${options.body}`,
  )
  const load: HttpLoad = { answered: 0, failed: 0, tookMs: 0 }
  let sent = 0
  const since = performance.now()
  await Promise.all(Array.from({ length: options.connections }, () => loop()))
  load.tookMs = performance.now() - since
  return load

  function loop(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket: Socket = connect(Number(port), hostname)
      socket.setNoDelay(true)
      let held = ''
      const next = () => {
        if (sent < options.requests) {
          sent++
          socket.write(request)
        } else socket.end()
      }
      socket.setEncoding('latin1')
      socket.once('connect', next)
      socket.on('data', (chunk: string) => {
        held += chunk
        const end = answerEnd(held)
        if (end === -1) return
        load.answered++
        if (Number(held.slice(9, 12)) !== options.expect) load.failed++
        held = held.slice(end)
        next()
      })
      socket.once('error', reject)
      socket.once('close', () => resolve())
    })
  }
}

/** Where the first answer in the text ends; -1: it is not whole yet. */
function answerEnd(text: string): number {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return -1
  const at = text.toLowerCase().indexOf('content-length:')
  const length = Number.parseInt(text.slice(at + 15, at + 40), 10)
  const end = headEnd + 4 + length
  return text.length >= end ? end : -1
}
