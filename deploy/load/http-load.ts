import { once } from 'node:events'
import { connect } from 'node:net'

export interface Target {
  url: string
  path: string
  apiKey: string
  /** POST by default. */
  method?: 'GET' | 'POST'
  /** Left out for a GET. */
  body?: string
  headers?: Record<string, string>
}

export interface Answer {
  status: number
  /** Lines of the head behind the status. */
  head: string
  body: string
}

/** One kept-alive connection that sends the same request again and again. */
export interface Poster {
  /** Sends it and waits for the answer. */
  post(): Promise<Answer>
  close(): void
}

function bytesOf({ url, path, apiKey, method = 'POST', body, headers = {} }: Target): Buffer {
  const { hostname } = new URL(url)
  const own = { Host: hostname, Authorization: `Bearer ${apiKey}` }
  const ofBody = { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body ?? '')) }
  const all = Object.entries({ ...own, ...(body !== undefined && ofBody), ...headers })
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\n${all.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body ?? ''}`,
  )
}

/** A connection that is silent for longer is given up. */
const ANSWERED_MS = 60_000

/**
 * A client that does next to nothing, since it shares the machine with what it measures: one fixed request as bytes,
 * and of the answer status and length. Answers have a content-length, or no body.
 */
export async function openPoster(target: Target): Promise<Poster> {
  const request = bytesOf(target)
  let connection = await openConnection(target.url)
  return {
    async post() {
      // The server closes a connection that was silent for some ten seconds.
      if (connection.isClosed()) connection = await openConnection(target.url)
      return connection.send(request)
    },
    close: () => connection.close(),
  }
}

interface Connection {
  isClosed(): boolean
  send(request: Buffer): Promise<Answer>
  close(): void
}

async function openConnection(url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  socket.setEncoding('latin1')
  socket.setTimeout(ANSWERED_MS, () => socket.destroy(new Error(`no answer within ${ANSWERED_MS} ms`)))
  await once(socket, 'connect')
  let held = ''
  let waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined
  socket.on('data', (chunk: string) => {
    held += chunk
    const answer = firstAnswer(held)
    if (!answer) return
    held = held.slice(answer.length)
    // One in 64 answers without a body ends its connection.
    if (/\r\nconnection: close/i.test(answer.head)) socket.destroy()
    waiting?.resolve(answer)
  })
  socket.on('close', () => waiting?.reject(new Error('the connection was closed')))
  socket.on('error', (error) => waiting?.reject(error))
  return {
    isClosed: () => socket.destroyed,
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        socket.write(request)
      }),
    close: () => void socket.destroy(),
  }
}

/** The first answer in the text, if it is whole. */
function firstAnswer(text: string): (Answer & { length: number }) | undefined {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = text.slice(0, headEnd)
  const length = headEnd + 4 + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  if (text.length < length) return undefined
  return { status: Number(text.slice(9, 12)), head, body: text.slice(headEnd + 4, length), length }
}

export interface HttpLoad {
  /** Statuses other than the expected one. */
  failed: number
  tookMs: number
  /** How long each answer took, in milliseconds. */
  latencies: number[]
}

/** A closed loop: each connection sends its next request when it has its answer. Ends by number, or by the clock. */
export async function httpLoad(
  options: Target & {
    connections: number
    requests?: number
    forMs?: number
    until?: AbortSignal
    /** Left out: any status will do. */
    expect?: number
  },
): Promise<HttpLoad> {
  const { requests = Infinity, forMs = Infinity, until, expect } = options
  const latencies: number[] = []
  let sent = 0
  let failed = 0
  const since = performance.now()
  const isOver = (now: number) => sent >= requests || now - since >= forMs || until?.aborted
  await Promise.all(
    Array.from({ length: options.connections }, async () => {
      const poster = await openPoster(options)
      let now = performance.now()
      while (!isOver(now)) {
        sent++
        const { status } = await poster.post()
        if (expect !== undefined && status !== expect) failed++
        const answeredAt = performance.now()
        latencies.push(answeredAt - now)
        now = answeredAt
      }
      poster.close()
    }),
  )
  return { failed, tookMs: performance.now() - since, latencies }
}
