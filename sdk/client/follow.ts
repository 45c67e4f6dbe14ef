import type { Channel, RunEvent } from '@windlass/shared/model/event.ts'
import { ApiError, openOp } from '@windlass/shared/ops/call.ts'
import type { Base } from '@windlass/shared/ops/call.ts'
import { runs } from '@windlass/shared/ops/runs.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { SseParser } from './sse.ts'
import type { SseFrame } from './sse.ts'

export interface FollowOptions {
  /** Only events with a greater cursor; 0, the default, is the whole log. */
  since?: number
  /** Which channels; `lifecycle`, `phase` and `output` when left out. */
  channels?: Channel[]
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

const SILENCE_MS = 45_000
const PATIENCE_MS = 120_000
const BACKOFF = { firstMs: 250, capMs: 5_000 }

/** A run that is being followed, and what is known between two connections. */
interface Following {
  readonly base: Base
  readonly run: string
  readonly options: FollowOptions
  cursor: number
  isDone: boolean
  failures: number
  heardAt: number
}

/**
 * The events of a run as they happen, each exactly once and in order. Ends when the run has ended and its log is read;
 * a broken connection is made again from the last cursor.
 */
export async function* follow(base: Base, run: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void> {
  const start = { cursor: options.since ?? 0, isDone: false, failures: 0, heardAt: performance.now() }
  const following: Following = { base, run, options, ...start }
  for (;;) {
    options.signal?.throwIfAborted()
    let trouble: unknown
    try {
      yield* connection(following)
    } catch (error) {
      options.signal?.throwIfAborted()
      if (!isPassing(error)) throw error
      trouble = error
    }
    if (following.isDone) return
    await beforeNext(following, trouble)
  }
}

/** One connection, from the cursor to its end. */
async function* connection(following: Following): AsyncGenerator<RunEvent, void> {
  const { signal, silenceMs = SILENCE_MS } = following.options
  const life = new Lifeline(signal, silenceMs)
  try {
    const response = await open(following, life)
    for await (const frame of framesOf(response, following, life)) {
      const event = take(following, frame, response.url)
      if (following.isDone) return
      if (!event) continue
      yield event
      // The reader may have taken its time; that was not the server's silence.
      life.heard()
      following.heardAt = performance.now()
    }
  } finally {
    life.end()
  }
}

function open({ base, run, options, cursor }: Following, life: Lifeline): Promise<Response> {
  const args = { run, since: cursor, ...(options.channels && { channels: options.channels }) }
  const headers = { accept: 'text/event-stream', ...(cursor > 0 && { 'last-event-id': String(cursor) }) }
  return openOp(base, runs.stream, args, { signal: life.signal, deadlineMs: life.silenceMs, headers })
}

async function* framesOf(response: Response, following: Following, life: Lifeline): AsyncGenerator<SseFrame, void> {
  const parser = new SseParser()
  for await (const text of textOf(response, life)) {
    following.heardAt = performance.now()
    yield* parser.push(text)
  }
}

/** Moves the cursor; nothing when a resend brought an event that was told already. */
function take(following: Following, frame: SseFrame, url: string): RunEvent | undefined {
  following.failures = 0
  following.isDone = frame.event === 'done'
  if (following.isDone) return undefined
  const event = eventOf(frame, url)
  if (event.cursor <= following.cursor) return undefined
  following.cursor = event.cursor
  return event
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

function eventOf(frame: SseFrame, url: string): RunEvent {
  try {
    const event = JSON.parse(frame.data) as RunEvent
    if (Number.isSafeInteger(event.cursor)) return event
  } catch (cause) {
    throw new ApiError(`${url} sent an event that is not JSON`, { status: 200, code: 'BAD_ANSWER', cause })
  }
  throw new ApiError(`${url} sent an event without a cursor`, { status: 200, code: 'BAD_ANSWER' })
}

/** Whether trying again may help. A refusal (4xx) stays one; a lost connection is not an `ApiError` at all. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true
  return error.status === 0 || error.status === 429 || error.status >= 500
}

/** Waits a little, or gives up when the server has been away for too long. */
async function beforeNext(following: Following, trouble: unknown): Promise<void> {
  const { base, run, options, cursor, heardAt } = following
  const { patienceMs = PATIENCE_MS, onReconnect, signal } = options
  const why = trouble instanceof Error ? trouble.message : 'the server closed the stream'
  if (performance.now() - heardAt > patienceMs) {
    const message = `Lost ${base.url} while following ${run} at cursor ${cursor}: ${why}`
    throw new ApiError(message, { status: 0, code: 'UNREACHABLE', cause: trouble })
  }
  onReconnect?.(why)
  await pause(backoffMs(following.failures++, BACKOFF), signal)
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
