import { STATUS_CODES } from 'node:http'
import type { Fault } from '@windlass/shared/errors.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'

/** A body up to this size is read before its refusal is sent, so that the connection can be used again. */
const SHORT_BYTES = 1024 * 1024

/** Whether the refusal has to go out before the body is in. */
export function hasMuchToCome({ received, headers }: HttpRequest, fault: Fault): boolean {
  if (received) return false
  const length = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
  return fault.code === 'PAYLOAD_TOO_LARGE' || length > SHORT_BYTES
}

/**
 * A client that sends so much before it reads still has its answer; whoever sends more is cut. Reading keeps everybody
 * else waiting.
 */
const MOST_DROPPED_BYTES = 8 * 1024 * 1024

type Headers = readonly (readonly [name: string, value: string])[]

interface Exchange {
  request: HttpRequest
  response: HttpResponse
  requestId: string
  headers: Headers
}

interface Ahead {
  status: number
  headers: Headers
  text: string
}

/**
 * Answers at the head of a request whose body nobody wants, and goes on reading: closed at once, the connection would
 * be reset and the answer lost to every client that reads after it has written. What comes is dropped. The connection
 * ends with the body, after `MOST_DROPPED_BYTES`, or by `Unread`.
 *
 * The framework sends no answer before the body is in, and µWS ends a connection with its answer or not at all. So the
 * answer is written as what µWS passes on unread, its status line. The line break that µWS adds counts as body: behind
 * JSON it means nothing.
 */
export function sendAhead({ request, response, requestId, headers }: Exchange, answer: Ahead): void {
  const fields = [
    ...headers,
    ...answer.headers,
    ['x-request-id', requestId],
    ['x-content-type-options', 'nosniff'],
    ['cache-control', 'no-store'],
    ['connection', 'close'],
    ['content-length', String(Buffer.byteLength(answer.text) + 2)],
  ]
  const head = fields.map(([name, value]) => `${name}: ${value}`).join('\r\n')
  const line = `${answer.status} ${STATUS_CODES[answer.status]}`
  response.atomic(() => response.raw.writeStatus(`${line}\r\n${head}\r\n\r\n${answer.text}`))
  closeWithBody(request, response)
}

/** Ends the connection of a response that was written and is pending; what still comes of its request is dropped. */
export function closeWithBody(request: HttpRequest, response: HttpResponse): void {
  // Not at once: with the last piece of the body the answer may still lie in the packet that is being put together.
  const close = () => void setImmediate(() => response.close())
  if (request.received) return close()
  let dropped = 0
  request.on('data', ({ byteLength }) => {
    dropped += byteLength
    // At once: of a socket that is always full µWS reads on within one turn of the event loop.
    if (dropped > MOST_DROPPED_BYTES) response.close()
  })
  request.on('end', close)
}

/** Refusals whose request is still coming in. What does not end in time is cut. */
export class Unread {
  readonly #since = new Map<HttpResponse, number>()
  readonly #timer: NodeJS.Timeout
  readonly #deadlineMs: number

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs
    // One timer for all: with a timer each, a flood of refusals would keep a million of them.
    this.#timer = setInterval(() => this.#sweep(), deadlineMs / 3).unref()
  }

  add(response: HttpResponse): void {
    this.#since.set(response, performance.now())
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#since.clear()
  }

  #sweep(): void {
    const oldest = performance.now() - this.#deadlineMs
    for (const [response, since] of this.#since) {
      if (response.completed || since < oldest) this.#since.delete(response)
      if (since < oldest) response.close()
    }
  }
}
