import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { assertType } from '@windlass/shared/ops/whose-answer.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { BACKOFF, isPassing, PATIENCE_MS } from './patience.ts'
import { SseParser } from './sse.ts'
import type { SseFrame } from './sse.ts'

export interface ReconnectOptions {
  /** Ends the iteration by throwing the signal's reason. */
  signal?: AbortSignal
  /**
   * A connection that says nothing for this long is given up for a new one. 45 s: the server is heard of every 15 s.
   */
  silenceMs?: number
  /** How long to go on trying when the server cannot be reached; 2 min by default. */
  patienceMs?: number
  /** Told before each new attempt. */
  onReconnect?: (why: string) => void
}

/** What is read through broken connections. */
export interface Source<T> {
  /** In words, with the place that has been reached: for the error when the server stays away. */
  where(): string
  /** One connection, from where the last one was lost. */
  open(options: { signal: AbortSignal; deadlineMs: number }): Promise<Response>
  /** Moves the place. Undefined: nothing new, as when a resend brought what was told already. */
  take(frame: SseFrame, url: string): T | undefined
  /** Nothing follows what was taken. */
  isDone(): boolean
}

const SILENCE_MS = 45_000

/** An event that nobody can read, or what a callback of the reader threw: another connection brings the same. */
class NotTaken extends Error {}

/** What is known between two connections. */
interface Line {
  failures: number
  heardAt: number
}

/** Reads a stream to its end, in as many connections as it takes. */
export async function* acrossConnections<T>(source: Source<T>, options: ReconnectOptions): AsyncGenerator<T, void> {
  const line: Line = { failures: 0, heardAt: performance.now() }
  for (;;) {
    options.signal?.throwIfAborted()
    let trouble: unknown
    try {
      yield* connection(source, options, line)
    } catch (error) {
      options.signal?.throwIfAborted()
      if (error instanceof NotTaken) throw error.cause
      if (!isPassing(error)) throw error
      trouble = error
    }
    if (source.isDone()) return
    await beforeNext(source, options, line, trouble)
  }
}

/** One connection, from the place that was reached to its end. */
async function* connection<T>(source: Source<T>, options: ReconnectOptions, line: Line): AsyncGenerator<T, void> {
  const { signal, silenceMs = SILENCE_MS } = options
  const life = new Lifeline(signal, silenceMs)
  try {
    const response = await source.open({ signal: life.signal, deadlineMs: life.silenceMs })
    // A page in place of the events is an outage like any other: it may be over soon.
    assertType(response, 'text/event-stream', 'events')
    for await (const frame of framesOf(response, line, life)) {
      line.failures = 0
      const taken = takenFrom(source, frame, response.url)
      if (source.isDone()) return
      if (taken === undefined) continue
      yield taken
      // The reader may have taken its time; that was not the server's silence.
      life.heard()
      line.heardAt = performance.now()
    }
  } finally {
    life.end()
  }
}

/** What is thrown here ends the iteration, as what the body of a loop throws does. */
function takenFrom<T>(source: Source<T>, frame: SseFrame, url: string): T | undefined {
  try {
    return source.take(frame, url)
  } catch (cause) {
    throw new NotTaken('it was not taken', { cause })
  }
}

async function* framesOf(response: Response, line: Line, life: Lifeline): AsyncGenerator<SseFrame, void> {
  const parser = new SseParser()
  for await (const text of textOf(response, life)) {
    line.heardAt = performance.now()
    yield* parser.push(text)
  }
}

async function* textOf(response: Response, life: Lifeline): AsyncGenerator<string, void> {
  if (!response.body)
    throw new ApiError(`${response.url} sent no stream`, { status: response.status, code: 'BAD_ANSWER' })
  const decoder = new TextDecoder()
  life.heard()
  for await (const bytes of response.body) {
    life.heard()
    yield decoder.decode(bytes as Uint8Array, { stream: true })
  }
}

/** The data of a frame. Throws an `ApiError` when it is not JSON. */
export function dataOf(frame: SseFrame, url: string): unknown {
  try {
    return JSON.parse(frame.data)
  } catch (cause) {
    throw new ApiError(`${url} sent an event that is not JSON`, { status: 200, code: 'BAD_ANSWER', cause })
  }
}

/** Waits a little, or gives up when the server has been away for too long. */
async function beforeNext<T>(
  source: Source<T>,
  options: ReconnectOptions,
  line: Line,
  trouble: unknown,
): Promise<void> {
  const { patienceMs = PATIENCE_MS, onReconnect, signal } = options
  const why = trouble instanceof Error ? trouble.message : 'the server closed the stream'
  if (performance.now() - line.heardAt > patienceMs)
    throw new ApiError(`Lost ${source.where()}: ${why}`, { status: 0, code: 'UNREACHABLE', cause: trouble })
  onReconnect?.(why)
  await pause(backoffMs(line.failures++, BACKOFF), signal)
}

/** The caller's signal joined with a clock that is set back at every sign of life. */
class Lifeline {
  readonly silenceMs: number
  readonly signal: AbortSignal
  private readonly controller = new AbortController()
  private readonly outer: AbortSignal | undefined
  private readonly timer: NodeJS.Timeout
  private readonly forward = () => this.controller.abort(this.outer?.reason)

  constructor(outer: AbortSignal | undefined, silenceMs: number) {
    this.silenceMs = silenceMs
    this.outer = outer
    this.signal = this.controller.signal
    outer?.addEventListener('abort', this.forward, { once: true })
    const silent = new Error(`nothing heard for ${silenceMs / 1000} s`)
    this.timer = setTimeout(() => this.controller.abort(silent), silenceMs)
  }

  heard(): void {
    this.timer.refresh()
  }

  /** Lets go of the connection, also when the reader broke off. */
  end(): void {
    clearTimeout(this.timer)
    this.outer?.removeEventListener('abort', this.forward)
    this.controller.abort()
  }
}
