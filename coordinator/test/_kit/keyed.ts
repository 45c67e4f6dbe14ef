/** Requests under an idempotency key, by real sockets. */
import { connect } from 'node:net'
import { once } from 'node:events'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { TestCoordinator } from './coordinator.ts'

export interface Keyed {
  path: string
  body: object
  /** Of the header; undefined leaves it out. */
  key?: string | undefined
}

type Base = Pick<TestCoordinator, 'url' | 'apiKey'>

interface Made {
  id: string
}

export interface KeyedAnswer {
  status: number
  run?: Made & { status: string }
  delivery?: Made
  schedule?: Made & { enabled: boolean }
  error?: { code: string; message: string; detail: Record<string, unknown> }
}

const headersOf = ({ apiKey }: Base, key: string | undefined) => ({
  authorization: `Bearer ${apiKey}`,
  'content-type': 'application/json',
  ...(key !== undefined && { 'idempotency-key': key }),
})

export async function sendKeyed(base: Base, { path, body, key }: Keyed): Promise<KeyedAnswer> {
  const response = await fetch(base.url + path, {
    method: 'POST',
    headers: headersOf(base, key),
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  return { status: response.status, ...((await response.json()) as Omit<KeyedAnswer, 'status'>) }
}

/** Sends a request and cuts the connection when the answer begins: the work is done, and nobody has read that. */
export async function loseAnswer(base: Base, { path, body, key }: Keyed): Promise<void> {
  const { hostname, port, host } = new URL(base.url)
  const text = JSON.stringify(body)
  const headers = { host, ...headersOf(base, key), 'content-length': String(Buffer.byteLength(text)) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${text}`)
  await once(socket, 'data')
  socket.destroy()
}
