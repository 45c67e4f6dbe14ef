import { once } from 'node:events'
import { connect } from 'node:net'

export interface Target {
  url: string
  path: string
  apiKey: string
  body: string
}

/** One kept-alive connection that sends the same request again and again. */
export interface Poster {
  /** Sends it and waits for the answer. */
  post(): Promise<{ status: number; body: string }>
  close(): void
}

/**
 * A client that does next to nothing, since it shares the machine with what it measures: one fixed request as bytes, and
 * of the answer status and length. Answers are small and have a content-length.
 */
export async function openPoster(target: Target): Promise<Poster> {
  const { hostname, port } = new URL(target.url)
  const request = Buffer.from(
    `POST ${target.path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${target.apiKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(target.body)}\r\n\r\n${target.body}`,
  )
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  socket.setEncoding('latin1')
  await once(socket, 'connect')
  let held = ''
  let waiting: { resolve(answer: { status: number; body: string }): void; reject(error: Error): void } | undefined
  socket.on('data', (chunk: string) => {
    held += chunk
    const answer = firstAnswer(held)
    if (!answer) return
    held = held.slice(answer.length)
    waiting?.resolve(answer)
  })
  socket.on('close', () => waiting?.reject(new Error('the connection was closed')))
  socket.on('error', (error) => waiting?.reject(error))
  return {
    post: () =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(request)
      }),
    close: () => void socket.destroy(),
  }
}

/** The first answer in the text, if it is whole. */
function firstAnswer(text: string): { status: number; body: string; length: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const at = text.toLowerCase().indexOf('content-length:')
  const length = headEnd + 4 + Number.parseInt(text.slice(at + 15, at + 40), 10)
  if (text.length < length) return undefined
  return { status: Number(text.slice(9, 12)), body: text.slice(headEnd + 4, length), length }
}

export interface HttpLoad {
  /** Statuses other than the expected one. */
  failed: number
  tookMs: number
}

/** A closed loop: each connection sends its next request when it has its answer. */
export async function httpLoad(
  options: Target & { connections: number; requests: number; expect: number },
): Promise<HttpLoad> {
  let sent = 0
  let failed = 0
  const since = performance.now()
  await Promise.all(
    Array.from({ length: options.connections }, async () => {
      const poster = await openPoster(options)
      while (sent < options.requests) {
        sent++
        const { status } = await poster.post()
        if (status !== options.expect) failed++
      }
      poster.close()
    }),
  )
  return { failed, tookMs: performance.now() - since }
}
