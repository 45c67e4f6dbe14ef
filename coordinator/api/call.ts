import type { ops } from '@windlass/shared/ops/index.ts'
import type { InputOf, Op, OutputOf } from '@windlass/shared/ops/op.ts'
import type { z } from 'zod'
import type { Acting, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { SseSink } from '../events/pour.ts'
import type { AgentSocket, ClosedBy } from '../agent-link/agent-socket.ts'
import type { Known } from '../limits/bytes-in-flight.ts'
import type { DownloadSeat } from '../limits/download-seats.ts'
import type { Source } from '../workflows/sources.ts'

export type { AgentSocket, ClosedBy, SseSink }

/** The request of a row with `body: 'raw'`, whose body the handler reads itself. */
export interface RawRequest {
  readonly method: string
  readonly path: string
  /** What stands behind the `?`, undecoded. */
  readonly query: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * Reads the body: `onPiece` is told of each piece as it comes. Of what is longer than `keep` the first `keep` bytes
   * are kept. Throws PAYLOAD_TOO_LARGE at the first byte over the limit of the row.
   */
  read(options: { keep?: number; onPiece: (piece: Uint8Array) => void }): Promise<{ saved: Buffer; bytes: number }>
  /** Where its bytes are counted, which are in memory until the handler has ended. */
  readonly known: Known
  /** They are in memory until this has ended too. */
  holdFor(work: Promise<unknown>): void
}

/** What a handler is given. An identity of another kind throws: the row and its handler disagree. */
export interface Call<I> {
  input: I
  requestId: string
  /** Aborts when the client has gone. */
  gone: AbortSignal
  /** Throws when the client has gone, and nobody would read the answer. Our own stop is no reason for it. */
  assertConnected(): void
  /** A request header by its lower-case name. */
  header(name: string): string | undefined
  /** Address of the other end of the connection, which may be a proxy. */
  get peer(): string
  /** Address of the client, as far as trusted proxies tell. */
  get address(): string
  /** Address by which the caller reaches this coordinator, without a slash at its end. */
  get base(): string
  get caller(): Acting
  /** Throws UNAUTHENTICATED when the credential serves no more: before what a caller gets after a wait. */
  stay(): Promise<void>
  get runner(): RunnerIdentity
  get program(): ProgramIdentity
  /** Of a row with `body: 'raw'`. */
  get raw(): RawRequest
  /** Of a page of a log so many bytes are of use at most; undefined: all that the row gives. */
  readonly pageBytes?: number
}

/** An answer that is JSON text already, so that payloads and logs are not parsed only to be printed again. */
export class JsonText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A JSON answer whose last field is `files`, which are too many to be held in memory. */
export class FilesAnswer<T extends object = object> {
  readonly head: T
  readonly files: Source
  constructor(head: T, files: Source) {
    this.head = head
    this.files = files
  }
}

/** A JSON answer whose status is another than that of its row. */
export class StatusAnswer<T> {
  readonly status: number
  readonly value: T
  constructor(status: number, value: T) {
    this.status = status
    this.value = value
  }
}

/** The answer of a row with `wire: 'sse'`: headers are sent, then `run` writes until it returns. */
export class SseAnswer {
  readonly run: (sink: SseSink) => Promise<void>
  constructor(run: (sink: SseSink) => Promise<void>) {
    this.run = run
  }
}

/** The answer of a row with `wire: 'bytes'`. */
export class BytesAnswer {
  readonly bytes: Uint8Array
  readonly contentType: string
  /** Given one, a client that has these bytes already is told 304. */
  readonly etag: string | undefined
  readonly headers: Readonly<Record<string, string>>
  constructor(bytes: Uint8Array, contentType: string, more: { etag?: string; headers?: Record<string, string> } = {}) {
    this.bytes = bytes
    this.contentType = contentType
    this.etag = more.etag
    this.headers = more.headers ?? {}
  }
}

/**
 * The answer of a row with `wire: 'bytes'` whose bytes come in pieces, each as soon as the reader has taken the one
 * before. It may end early; then what the pieces come from is let go.
 */
export class PiecesAnswer {
  readonly pieces: AsyncGenerator<Uint8Array | string, void, void>
  readonly contentType: string
  /** Of all pieces together, where that is known beforehand. */
  readonly bytes: number | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Its reader takes nothing, and others need the room. */
  readonly cut: AbortSignal | undefined
  constructor(
    pieces: AsyncGenerator<Uint8Array | string, void, void>,
    contentType: string,
    more: { bytes?: number; headers?: Record<string, string>; cut?: AbortSignal } = {},
  ) {
    this.pieces = pieces
    this.contentType = contentType
    this.bytes = more.bytes
    this.headers = more.headers ?? {}
    this.cut = more.cut
  }
}

const NO_SEAT: DownloadSeat = { took: () => {}, leave: () => {} }

/**
 * The answer of a row with `wire: 'bytes'` whose bytes lie on disk, and are too many to be held in memory for each
 * reader.
 */
export class FileAnswer {
  readonly path: string
  readonly contentType: string
  readonly etag: string
  /**
   * Called before the first of its bytes is read, and left after the last has gone. It may refuse, and may call
   * `giveWay` later, which ends the answer.
   */
  readonly takeSeat: (giveWay: () => void) => DownloadSeat
  constructor(path: string, contentType: string, etag: string, takeSeat: FileAnswer['takeSeat'] = () => NO_SEAT) {
    this.path = path
    this.contentType = contentType
    this.etag = etag
    this.takeSeat = takeSeat
  }
}

/** The answer of a row with `wire: 'socket'`: called once the upgrade is done. */
export class SocketAnswer {
  readonly accept: (socket: AgentSocket) => void
  constructor(accept: (socket: AgentSocket) => void) {
    this.accept = accept
  }
}

type JsonAnswer<T> = T | JsonText | StatusAnswer<T> | FilesAnswer<Omit<T, 'files'>>

type AnswerOf<R> =
  R extends Op<z.ZodObject, z.ZodType>
    ? R['wire'] extends undefined
      ? JsonAnswer<OutputOf<R>> | BytesAnswer
      : JsonAnswer<OutputOf<R>> | SseAnswer | BytesAnswer | PiecesAnswer | FileAnswer | SocketAnswer
    : never

export type Handler<R> = (call: Call<InputOf<R>>) => Promise<AnswerOf<R>> | AnswerOf<R>

/** A handler for every row of a group; a missing or a superfluous one does not compile. */
export type HandlersFor<G extends keyof typeof ops> = { [K in keyof (typeof ops)[G]]: Handler<(typeof ops)[G][K]> }
