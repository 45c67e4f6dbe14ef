import { Fault } from '@windlass/shared/errors.ts'
import type { RawRequest } from '../api/call.ts'
import type { BytesInFlight, Holding, Known } from '../limits/bytes-in-flight.ts'
import { networkOf } from '../limits/strangers.ts'
import { ClientGone } from '../unforeseen.ts'
import { assertPlain, tooLarge } from '../call/body.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import { Pieces } from '../call/pieces.ts'

/** 25 MiB at 420 KB/s: providers have better lines, and a slow stranger is not to hold what they need. */
const BODY_DEADLINE_MS = 60_000

interface RawNeeds {
  request: HttpRequest
  response: HttpResponse
  /** Bounds what is in memory of bodies, for each address of clients and for all. */
  bodies: BytesInFlight
  address: string
  limit: number
}

/** A body as it comes. Nobody has proved yet who sends it: it counts for his address until it is known whose it is. */
export class RawBody implements RawRequest {
  readonly #needs: RawNeeds
  readonly #holding: Holding
  /** Ends the reading, if it is under way. */
  #fail: ((error: unknown) => void) | undefined
  #isWhole = false
  #work: Promise<unknown> | undefined

  constructor(needs: RawNeeds) {
    this.#needs = needs
    this.#holding = needs.bodies.hold(networkOf(needs.address), () => this.#giveWay())
    // What is whole is in memory until its handler is done with it.
    needs.response.once('abort', () => this.#isWhole || this.#holding.release())
  }

  get method(): string {
    return this.#needs.request.method
  }
  get path(): string {
    return this.#needs.request.path
  }
  get query(): string {
    return this.#needs.request.path_query
  }
  get headers(): Readonly<Record<string, string>> {
    return this.#needs.request.headers
  }

  get known(): Known {
    return this.#holding
  }

  holdFor(work: Promise<unknown>): void {
    this.#work = work
  }

  /** To be called when the handler has ended. */
  release(): void {
    const { release } = this.#holding
    if (this.#work) this.#work.then(release, release)
    else release()
  }

  #giveWay(): void {
    const message = 'This body came too slowly while others needed the room; send it again.'
    this.#fail?.(new Fault('UNAVAILABLE', {}, message))
    this.#holding.release()
  }

  async read(options: Parameters<RawRequest['read']>[0]): Promise<{ saved: Buffer; bytes: number }> {
    const { request, response, limit } = this.#needs
    assertPlain(request.headers['content-encoding'])
    const length = request.headers['content-length']
    if (length !== undefined && Number(length) > limit) throw tooLarge(limit, Number(length))
    if (Number(length ?? 0) === 0 && request.headers['transfer-encoding'] === undefined)
      return { saved: Buffer.alloc(0), bytes: 0 }
    if (response.completed) throw new ClientGone()
    const late = setTimeout(() => response.close(), BODY_DEADLINE_MS)
    try {
      return await this.#pieces(options)
    } finally {
      clearTimeout(late)
    }
  }

  #pieces({ keep = Number.POSITIVE_INFINITY, onPiece }: Parameters<RawRequest['read']>[0]) {
    const { request, limit } = this.#needs
    return new Promise<{ saved: Buffer; bytes: number }>((resolve, reject) => {
      let bytes = 0
      let saved: Pieces | undefined = new Pieces()
      const fail = (error: unknown) => {
        saved = undefined
        reject(error instanceof Error ? error : new Error(String(error)))
      }
      this.#fail = fail
      request.on('data', (piece) => {
        if (!saved) return
        bytes += piece.byteLength
        if (bytes > limit) return fail(tooLarge(limit, bytes))
        const share = piece.subarray(0, Math.max(0, keep - saved.bytes))
        try {
          this.#holding.take(share.byteLength)
        } catch (error) {
          return fail(error)
        }
        onPiece(piece)
        saved.add(share)
      })
      request.on('end', () => {
        if (!saved) return
        this.#isWhole = true
        this.#holding.whole()
        resolve({ saved: saved.whole(), bytes })
      })
      request.on('error', fail)
      request.on('close', () => fail(new ClientGone()))
    })
  }
}
