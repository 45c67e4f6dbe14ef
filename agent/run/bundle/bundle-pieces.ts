import type { Log } from '@windlass/shared/log.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Rest } from '../../link/rest.ts'
import { createSilence } from '../../link/silence.ts'
import type { Silence } from '../../link/silence.ts'
import type { Arrival } from './arrival.ts'
import { isHostTrouble } from './host-trouble.ts'

export interface PiecesOptions {
  rest: Pick<Rest, 'bundle'>
  log: Log
  paces: FetchPaces
}

/** A bundle may take as long as it needs, over a line of any kind, while it goes on. */
export interface FetchPaces {
  /** So many bytes are progress. */
  readonly stepBytes: number
  /** A connection that brings less than a step in this time is given up for another one. */
  readonly silenceMs: number
  /** A bundle that gets no further by a step in this time, over whatever connections, is given up. */
  readonly patienceMs: number
}

/** Ends at 1 kB/s. All that an agent fetches at a time then fits through a modem, and 50 MiB take 13 hours at most. */
export const FETCH_PACES: FetchPaces = { stepBytes: 32 * 1024, silenceMs: 30_000, patienceMs: 60_000 }

const BACKOFF = { firstMs: 200, capMs: 5_000 }

/** Nothing more of it came for too long, or will. */
export class NotArrived extends Error {}

/** The coordinator has less of it than the offer says. */
export class Truncated extends Error {}

/**
 * The bytes of a bundle, in order. Where a connection breaks off, the next one goes on from there. So it does where an
 * answer ends too early: a proxy that was cut off itself may end it as if that were all.
 */
export async function* bundlePieces(
  options: PiecesOptions,
  digest: string,
  arrival: Arrival,
): AsyncGenerator<Uint8Array, void, void> {
  for (let failures = 0; ;) {
    const before = arrival.bytes
    let broken: Broken | undefined
    for await (const piece of piecesFrom(options, digest, before)) {
      if (piece instanceof Broken) {
        broken = piece
        continue
      }
      arrival.came(piece.length)
      yield piece
    }
    if (arrival.isWhole) return
    failures = arrival.bytes > before ? 0 : failures + 1
    const { error } = broken ?? new Broken(new Error('The answer ended before the bundle did'))
    assertWorthwhile(options, { digest, arrival, error })
    await pause(backoffMs(failures, BACKOFF))
  }
}

/** Over one connection. That it breaks off is said last. */
async function* piecesFrom(
  options: PiecesOptions,
  digest: string,
  from: number,
): AsyncGenerator<Uint8Array | Broken, void, void> {
  const body = new Body(options, digest, from)
  try {
    for (let piece = await body.read(); piece; piece = await body.read()) {
      yield piece
      if (piece instanceof Broken) return
    }
  } finally {
    body.end()
  }
}

/** Why a connection broke off. A value, so that what the reader of the pieces throws is not taken for it. */
class Broken {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** What one connection brings, from this byte on. */
class Body {
  readonly #options: PiecesOptions
  readonly #digest: string
  readonly #silence: Silence
  readonly #from: number
  /** So many bytes come first that are there already. */
  #known = 0
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  constructor(options: PiecesOptions, digest: string, from: number) {
    this.#options = options
    this.#digest = digest
    this.#from = from
    this.#silence = createSilence(options.paces.silenceMs, options.paces.stepBytes)
  }

  /** Undefined at the end. */
  async read(): Promise<Uint8Array | undefined | Broken> {
    try {
      this.#reader ??= await this.#open()
      for (;;) {
        const { done, value } = await this.#reader.read()
        if (done) return undefined
        this.#silence.heard(value.length)
        const piece = value.subarray(this.#known)
        this.#known -= value.length - piece.length
        if (piece.length > 0) return piece
      }
    } catch (error) {
      return new Broken(this.#silence.signal.aborted ? this.#silence.signal.reason : error)
    }
  }

  async #open(): Promise<ReadableStreamDefaultReader<Uint8Array>> {
    const { rest } = this.#options
    const { from, body } = await rest.bundle(this.#digest, this.#from, this.#silence.signal)
    this.#known = this.#from - from
    return body.getReader()
  }

  end(): void {
    this.#silence.end()
    // One that has failed says so again.
    void this.#reader?.cancel().catch(() => undefined)
  }
}

/** Throws when there is no use in another connection. */
function assertWorthwhile(
  { log, paces }: PiecesOptions,
  { digest, arrival, error }: { digest: string; arrival: Arrival; error: unknown },
): void {
  if (isAbsent(error)) throw error
  if (isBehindEnd(error)) throw new Truncated(`the coordinator has no more of it: ${arrival.text()}`, { cause: error })
  const isOver = performance.now() - arrival.progressAt > paces.patienceMs
  // Another host may have what this one lacks, and the run need not wait for it.
  if (isOver || isHostTrouble(error)) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new NotArrived(`${reason}; ${arrival.text()}`, { cause: error })
  }
  log.warn('bundle.retry', { digest, bytes: arrival.bytes, error })
}

/** By its word: a 404 of a proxy says nothing of the bundle. */
export function isAbsent(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'NOT_FOUND'
}

function isBehindEnd(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'RANGE_NOT_SATISFIABLE'
}
