import type { Log } from '@windlass/shared/log.ts'
import type { SseAnswer, SseSink } from '../api/call.ts'
import { begin, end, type Outlet } from './answer.ts'
import type { HttpResponse } from '../call/exchange.ts'
import type { Open } from './open-work.ts'
import { outwait } from './outwait.ts'

/** What may wait for one reader. Writers stop at the first `false`, so only a writer that does not look gets here. */
const MOST_BUFFERED = 16 * 1024 * 1024

/** Means nothing to a reader. */
const COMMENT = ':\n\n'

export interface StreamOptions {
  log: Log
  /** How long a reader may stall. */
  stallMs: number
  /** How often a reader's credential is looked at again: a stream may last for weeks. */
  recheckMs: number
}

/**
 * Sends the headers and lets the answer write until it returns, its reader has gone or is not to read on, or the server stops.
 * `mayStay` never rejects.
 */
export async function sendStream(
  outlet: Outlet,
  answer: SseAnswer,
  { log, stallMs, recheckMs }: StreamOptions,
  mayStay: () => Promise<boolean>,
): Promise<void> {
  const { request, response, requestId, open } = outlet
  begin(outlet, 200, 'no-store')
    .header('content-type', 'text/event-stream; charset=utf-8')
    // nginx would gather our events until its buffer is full.
    .header('x-accel-buffering', 'no')
  if (request.method === 'HEAD') return end(outlet)
  const stream = new Stream(response, stallMs)
  open.add(stream)
  // Cut and not ended: the reader comes back, and is told then why it is refused.
  const rechecks = setInterval(() => void mayStay().then((may) => may || stream.cut()), recheckMs)
  try {
    stream.start()
    await answer.run(stream)
    stream.close()
  } catch (error) {
    if (!stream.gone.aborted) log.error('http.stream.failed', { requestId, error })
    // Without the closing chunk the reader sees a broken stream, not the end of one, and comes back.
    response.close()
  } finally {
    clearInterval(rechecks)
    stream.stop()
    open.delete(stream)
  }
}

/** The reader has not taken what was written. */
interface Stall {
  timer: NodeJS.Timeout
  endOutwait: () => void
  drained: Promise<void>
  resolve: () => void
  bytes: number
}

class Stream implements SseSink, Open {
  readonly #response: HttpResponse
  readonly #stallMs: number
  readonly #gone = new AbortController()
  #stalled: Stall | undefined

  constructor(response: HttpResponse, stallMs: number) {
    this.#response = response
    this.#stallMs = stallMs
    response.once('close', () => this.#leave())
  }

  get gone(): AbortSignal {
    return this.#gone.signal
  }

  start(): void {
    this.#response.begin_write()
    // A comment brings the headers on their way; without it they would wait for the first event.
    this.write(': ok\n\n')
  }

  write(text: string): boolean {
    if (this.#response.completed) return false
    let taken = true
    this.#response.atomic(() => {
      taken = this.#response.raw.write(text)
    })
    if (!taken) this.#stall(text.length)
    return taken
  }

  drained(): Promise<void> {
    return this.#stalled?.drained ?? Promise.resolve()
  }

  /** The server stops: the writer is told, and ends the stream by returning. */
  end(): void {
    this.#leave()
  }

  close(): void {
    if (!this.#response.completed) this.#response.atomic(() => this.#response.send())
  }

  stop(): void {
    this.#flow()
  }

  cut(): void {
    this.#response.close()
    this.#leave()
  }

  #stall(bytes: number): void {
    if (this.#response.completed) return
    if (this.#stalled) {
      this.#stalled.bytes += bytes
      if (this.#stalled.bytes > MOST_BUFFERED) this.cut()
      return
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => this.cut(), this.#stallMs)
    this.#stalled = { timer, endOutwait: outwait(this.#response), drained: promise, resolve, bytes }
    this.#response.drain(() => this.#sendOn(timer))
  }

  /** The reader has taken something. What µWS still holds of the stream leaves with the next write only: a comment. */
  #sendOn(timer: NodeJS.Timeout): boolean {
    timer.refresh()
    let taken = true
    this.#response.atomic(() => {
      taken = this.#response.raw.write(COMMENT)
    })
    if (taken) this.#flow()
    return taken
  }

  #flow(): void {
    if (!this.#stalled) return
    clearTimeout(this.#stalled.timer)
    this.#stalled.endOutwait()
    this.#stalled.resolve()
    this.#stalled = undefined
  }

  #leave(): void {
    this.#gone.abort()
    this.#flow()
  }
}
